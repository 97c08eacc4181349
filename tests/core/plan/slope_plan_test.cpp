#include "core/plan/slope_plan.hpp"

#include <utility>

#include "small_graph.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

// data -> a, in place on a, a -> b and c.
SmallGraph split_behind_activation() {
  SmallGraph small(4);
  small.add({}, {0});
  small.add({0}, {1});
  small.add({1}, {1});
  small.add({1}, {2, 3});
  return small;
}

Indices plan(const NetGraph& graph) {
  return plan_slopes(graph, [](std::size_t node, std::size_t) { return node == 3; });
}

TEST_CASE("a node in place leaves its slope to the node behind", "[plan]") {
  CHECK(plan(split_behind_activation().graph) == Indices{2});
}

TEST_CASE("a slope is applied once, and where the gradient goes on down", "[plan]") {
  SmallGraph small = split_behind_activation();
  GraphNode& activation = small.graph.nodes[2];
  GraphNode& split = small.graph.nodes[3];
  SECTION("by the layer before") { activation.fused = {true, true}; }
  SECTION("at its place, where it has none") { activation.propagate = {false}; }
  SECTION("at its place, where nothing is behind it") { activation.needs_backward = false; }
  SECTION("between it and a loss weight") { activation.loss_weights = {1.0F}; }
  SECTION("between two blobs") { activation.bottoms = {0}; }
  SECTION("while shapes vary") { activation.shapes_vary = true; }
  SECTION("where the node behind hands nothing on") { split.propagate = {false}; }
  SECTION("where the node behind is in place itself") { split.tops = {1, 2}; }
  CHECK(plan(small.graph).empty());
}

TEST_CASE("a slope is that of the last node before", "[plan]") {
  SmallGraph small(4);
  small.add({}, {0});
  small.add({0}, {1});
  small.add({1}, {1});
  small.add({1}, {2, 3});
  // Another reader stands between the two.
  std::swap(small.graph.nodes[2], small.graph.nodes[3]);
  small.graph.nodes[3].bottoms = {1};
  small.graph.nodes[3].tops = {3};
  CHECK(plan(small.graph).empty());
}

}  // namespace
}  // namespace speedo
