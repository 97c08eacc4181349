#include "core/plan/backward_plan.hpp"
#include "small_graph.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using Flags = std::vector<bool>;

// Of a layer without parameters, whose bottoms can all have gradients.
BackwardTraits free_of_parameters(const GraphNode& node) {
  const Flags all(node.bottoms.size(), true);
  return {{}, {}, all, all};
}

// data -> a -> Split -> b -> loss(b, label), where b is trained; beside it Split -> c, which is
// trained and read by no loss.
struct Forked {
  Forked() : small(8) {
    small.add({}, {0, 1});
    small.add({0}, {2});
    small.add({2}, {3, 4});
    small.add({3}, {5});
    small.add({5, 1}, {6}).loss_weights = {1.0F};
    small.add({4}, {7});
    for (const GraphNode& node : small.graph.nodes) traits.push_back(free_of_parameters(node));
    traits[3].trained = traits[5].trained = {true};
    traits[4].can_propagate[1] = false;
  }

  BackwardPlan plan(bool is_forced = false) const {
    return plan_backward(small.graph, traits, is_forced);
  }

  SmallGraph small;
  std::vector<BackwardTraits> traits;
};

TEST_CASE("backward goes from a trained parameter up to a loss, nowhere else", "[plan]") {
  const BackwardPlan plan = Forked().plan();
  CHECK(plan.needs_backward == Flags{false, false, false, true, true, false});
  CHECK(plan.propagate[3] == Flags{false});
  CHECK(plan.propagate[4] == Flags{true, false});
  CHECK(plan.propagate[5] == Flags{false});
  CHECK(plan.needs_grad == Flags{false, false, false, false, false, true, true, false});
  CHECK(plan.refused.empty());
}

TEST_CASE("what is trained deeper takes its readers along", "[plan]") {
  Forked net;
  net.traits[1].trained = {true, false};
  const BackwardPlan plan = net.plan();
  CHECK(plan.needs_backward == Flags{false, true, true, true, true, false});
  CHECK(plan.propagate[2] == Flags{true});
  CHECK(plan.propagate[3] == Flags{true});
  CHECK(plan.needs_grad == Flags{false, false, true, true, true, true, true, false});
}

TEST_CASE("propagate_down cuts off what lies before it", "[plan]") {
  Forked net;
  net.traits[1].trained = {true};
  net.traits[3].propagate_down = {false};
  CHECK(net.plan().needs_backward == Flags{false, false, false, true, true, false});
}

TEST_CASE("a bottom that cannot have a gradient is refused where one is needed", "[plan]") {
  Forked net;
  net.traits[0].trained = {true};
  const BackwardPlan plan = net.plan();
  REQUIRE(plan.refused.size() == 1);
  CHECK(plan.refused[0].node == 4);
  CHECK(plan.refused[0].bottom == 1);
  CHECK(plan.propagate[4] == Flags{true, false});
}

TEST_CASE("a forced backward pass reaches every bottom that may be forced", "[plan]") {
  Forked net;
  net.traits[5].may_be_forced = {false};
  const BackwardPlan plan = net.plan(true);
  CHECK(plan.needs_backward == Flags(6, true));
  CHECK(plan.propagate[1] == Flags{true});
  CHECK(plan.propagate[4] == Flags{true, false});
  CHECK(plan.propagate[5] == Flags{false});
  CHECK(plan.refused.empty());
}

TEST_CASE("the uses of a blob in place count as one", "[plan]") {
  SmallGraph small(2);
  small.add({}, {0});
  small.add({0}, {0});
  small.add({0}, {0});
  small.add({0}, {1}).loss_weights = {1.0F};
  std::vector<BackwardTraits> traits;
  for (const GraphNode& node : small.graph.nodes) traits.push_back(free_of_parameters(node));
  traits[1].trained = {true};
  const BackwardPlan plan = plan_backward(small.graph, traits, false);
  CHECK(plan.needs_backward == Flags{false, true, true, true});
  CHECK(plan.propagate[1] == Flags{false});
  CHECK(plan.propagate[2] == Flags{true});
  // Cut off at one of them, it is for all that come before.
  traits[3].propagate_down = {false};
  CHECK(plan_backward(small.graph, traits, false).needs_backward ==
        Flags{false, false, false, true});
}

}  // namespace
}  // namespace speedo
