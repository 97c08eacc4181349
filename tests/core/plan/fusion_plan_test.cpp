#include "core/plan/fusion_plan.hpp"
#include "core/plan/shape_plan.hpp"
#include "small_graph.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

// data -> a, then three nodes in place on a, then b.
SmallGraph chain_in_place() {
  SmallGraph small(3);
  small.add({}, {0});
  small.add({0}, {1});
  for (int i = 0; i < 3; ++i) small.add({1}, {1});
  small.add({1}, {2});
  return small;
}

// Layers that take over both passes where they may, and note what they were asked.
struct WillingLayers {
  FusionPlan plan(const NetGraph& graph, bool trains = true) {
    if (keeps_bottom.empty()) keeps_bottom.assign(graph.nodes.size(), false);
    return plan_fusion(graph, keeps_bottom, trains,
                       [this](std::size_t node, std::size_t next, const FusionTerms& terms) {
                         asked.emplace_back(node, next);
                         if (next == refused) return Fused{};
                         return Fused{terms.with_backward || terms.forward_alone,
                                      terms.with_backward};
                       });
  }

  std::vector<bool> keeps_bottom;
  std::size_t refused = SIZE_MAX;
  std::vector<std::pair<std::size_t, std::size_t>> asked;
};

TEST_CASE("a node is offered those that follow in place, one after another", "[plan]") {
  WillingLayers layers;
  const FusionPlan plan = layers.plan(chain_in_place().graph);
  CHECK(plan.taken_over[1] == Indices{2, 3, 4});
  for (const std::size_t node : plan.taken_over[1]) {
    CHECK(plan.fused[node].forward);
    CHECK(plan.fused[node].backward);
  }
  CHECK_FALSE(plan.fused[5].forward);
  CHECK(layers.asked.size() == 3);
}

TEST_CASE("behind one that is refused, the next is offered to it", "[plan]") {
  WillingLayers layers;
  layers.refused = 3;
  const FusionPlan plan = layers.plan(chain_in_place().graph);
  CHECK(plan.taken_over[1] == Indices{2});
  CHECK(plan.taken_over[3] == Indices{4});
}

TEST_CASE("a loss weight asks for the values between two nodes", "[plan]") {
  SmallGraph small = chain_in_place();
  small.graph.nodes[2].loss_weights = {0.5F};
  const FusionPlan plan = WillingLayers().plan(small.graph);
  CHECK(plan.taken_over[1] == Indices{2});
  CHECK(plan.taken_over[2].empty());
  CHECK(plan.taken_over[3] == Indices{4});
}

TEST_CASE("terms say which passes can be one", "[plan]") {
  SmallGraph small = chain_in_place();
  // The node in place runs backward, the one before it has no gradient to pass on.
  small.graph.nodes[1].propagate = {false};
  WillingLayers layers;
  const FusionPlan apart = layers.plan(small.graph);
  CHECK(apart.taken_over[1] == Indices{2, 3, 4});
  CHECK_FALSE(apart.fused[2].backward);
  layers.keeps_bottom[2] = true;
  CHECK(layers.plan(small.graph).taken_over[1].empty());
  CHECK(layers.plan(small.graph, false).taken_over[1] == Indices{2, 3, 4});
}

TEST_CASE("nothing is fused with a node whose shapes vary, nor with several readers", "[plan]") {
  SmallGraph small = chain_in_place();
  const std::vector<bool> varying =
      find_varying_shapes(small.graph, {false, true, false, false, false, false});
  CHECK(varying == std::vector<bool>{false, true, true, true, true, true});
  for (std::size_t i = 0; i < varying.size(); ++i) small.graph.nodes[i].shapes_vary = varying[i];
  WillingLayers layers;
  layers.plan(small.graph);
  CHECK(layers.asked.empty());

  SmallGraph joined(3);
  joined.add({}, {0});
  joined.add({0}, {1});
  joined.add({1, 0}, {1});
  layers.keeps_bottom.clear();
  layers.plan(joined.graph);
  CHECK(layers.asked.empty());
}

// data -> a and c, in place on c, a + c -> d, in place on d; d -> e.
SmallGraph residual_block() {
  SmallGraph small(5);
  small.add({}, {0});
  small.add({0}, {1});
  small.add({0}, {2});
  small.add({2}, {2});
  small.add({1, 2}, {3});
  small.add({3}, {3});
  small.add({3}, {4});
  return small;
}

TEST_CASE("the last of two branches is offered the node that joins them", "[plan]") {
  SmallGraph small = residual_block();
  small.graph.nodes[4].propagate = {false, true};
  const FusionPlan plan = WillingLayers().plan(small.graph);
  CHECK(plan.taken_over[1].empty());
  CHECK(plan.taken_over[2] == Indices{3, 4, 5});
  REQUIRE(plan.joints.size() == 1);
  CHECK(plan.joints[0].other == 1);
  apply_fusion(plan, small.graph);
  CHECK(small.graph.nodes[2].bottoms == Indices{0, 1});
  CHECK(small.graph.nodes[2].propagate == std::vector<bool>{true, false});
  CHECK(small.graph.nodes[2].tops == Indices{3});
  for (const std::size_t taken : {3, 4, 5}) {
    CHECK(small.graph.nodes[taken].fused.forward);
    CHECK(small.graph.nodes[taken].bottoms == Indices{3});
    CHECK(small.graph.nodes[taken].tops == Indices{3});
    CHECK(small.graph.nodes[taken].propagate == std::vector<bool>{true});
  }
}

TEST_CASE("whichever branch is the last joins the other", "[plan]") {
  SmallGraph small = residual_block();
  std::swap(small.graph.nodes[1], small.graph.nodes[2]);
  std::swap(small.graph.nodes[2], small.graph.nodes[3]);
  const FusionPlan plan = WillingLayers().plan(small.graph);
  CHECK(plan.taken_over[1] == Indices{2});
  REQUIRE(plan.joints.size() == 1);
  CHECK(plan.joints[0].node == 3);
  CHECK(plan.joints[0].other == 2);
}

TEST_CASE("what is not there before, or is wanted apart, is not joined", "[plan]") {
  SmallGraph small = residual_block();
  SECTION("the other branch is written in between") { small.graph.nodes[3].tops = {2, 1}; }
  SECTION("of more than two") { small.graph.nodes[4].bottoms = {1, 2, 0}; }
  SECTION("a loss weight between") { small.graph.nodes[3].loss_weights = {1.0F}; }
  SECTION("shapes vary") { small.graph.nodes[4].shapes_vary = true; }
  SECTION("gradients go on in one of both") { small.graph.nodes[4].propagate = {true, false}; }
  WillingLayers layers;
  layers.keeps_bottom.assign(7, true);
  CHECK(layers.plan(small.graph).joints.empty());
}

}  // namespace
}  // namespace speedo
