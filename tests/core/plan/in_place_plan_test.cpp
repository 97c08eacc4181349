#include "core/plan/in_place_plan.hpp"
#include "small_graph.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

// input -> a, two nodes in place on a, then b.
SmallGraph two_in_place() {
  SmallGraph small(3);
  small.add({}, {0});
  small.add({0}, {1});
  small.add({1}, {1});
  small.add({1}, {1});
  small.add({1}, {2});
  return small;
}

TEST_CASE("a node that needs its bottom afterwards gets a top of its own", "[plan]") {
  std::vector<InPlaceTraits> traits(5);
  traits[2].keeps_bottom = true;
  const auto [graph, own_tops] = plan_in_place(two_in_place().graph, traits);
  REQUIRE(own_tops.size() == 1);
  CHECK(own_tops[0].node == 2);
  CHECK(own_tops[0].before == 1);
  CHECK(own_tops[0].after == 3);
  CHECK(graph.blobs.size() == 4);
  CHECK(graph.blobs[3].values == 3);
  CHECK(graph.nodes[1].tops == Indices{1});
  CHECK(graph.nodes[2].bottoms == Indices{1});
  CHECK(graph.nodes[2].tops == Indices{3});
  CHECK(graph.nodes[3].bottoms == Indices{3});
  CHECK(graph.nodes[3].tops == Indices{3});
  CHECK(graph.nodes[4].bottoms == Indices{3});
}

TEST_CASE("so does the one behind a node that needs its top", "[plan]") {
  std::vector<InPlaceTraits> traits(5);
  traits[1].keeps_top = traits[2].keeps_top = true;
  const auto [graph, own_tops] = plan_in_place(two_in_place().graph, traits);
  REQUIRE(own_tops.size() == 2);
  CHECK(graph.nodes[3].bottoms == Indices{3});
  CHECK(graph.nodes[3].tops == Indices{4});
  CHECK(graph.nodes[4].bottoms == Indices{4});
}

TEST_CASE("so does the one behind nodes that give such a top another name", "[plan]") {
  // 1 is kept; 2 and 3 lie in its memory, and the last node works in place on 3.
  SmallGraph small(4);
  small.add({}, {0});
  small.add({0}, {1});
  small.add({1}, {2});
  small.add({2}, {3});
  small.add({3}, {3});
  std::vector<InPlaceTraits> traits(5);
  traits[1].keeps_top = true;
  const std::vector<SharedTop> first_in_first = {{.top = 0, .bottom = 0, .with_gradient = true}};
  traits[2].shared_tops = traits[3].shared_tops = first_in_first;
  const auto [graph, own_tops] = plan_in_place(small.graph, traits);
  REQUIRE(own_tops.size() == 1);
  CHECK(own_tops[0].node == 4);
  CHECK(graph.nodes[4].bottoms == Indices{3});
  CHECK(graph.nodes[4].tops == Indices{4});

  traits[3].shared_tops.clear();
  CHECK(plan_in_place(small.graph, traits).own_tops.empty());
}

TEST_CASE("nobody gets one for a pass that does not run, or for an input", "[plan]") {
  std::vector<InPlaceTraits> traits(5);
  traits[2].keeps_bottom = true;
  SmallGraph fused = two_in_place();
  fused.graph.nodes[2].fused = {true, true};
  CHECK(plan_in_place(fused.graph, traits).own_tops.empty());
  fused.graph.nodes[2].fused = {true, false};
  CHECK(plan_in_place(fused.graph, traits).own_tops.size() == 1);

  SmallGraph pruned = two_in_place();
  pruned.graph.nodes[2].needs_backward = false;
  CHECK(plan_in_place(pruned.graph, traits).own_tops.empty());

  SmallGraph input(1);
  input.add({}, {0});
  input.add({0}, {0});
  std::vector<InPlaceTraits> input_traits(2);
  input_traits[0].keeps_tops = input_traits[1].keeps_bottom = true;
  CHECK(plan_in_place(input.graph, input_traits).own_tops.empty());
}

}  // namespace
}  // namespace speedo
