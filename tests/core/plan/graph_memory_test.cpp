#include <optional>

#include "core/plan/memory_plan.hpp"
#include "small_graph.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kElements = 2 * 16 * 3 * 3;  // a blob's, whole blocks of a cache line

// Layers whose backward passes read all, and that work in nobody's memory.
std::vector<MemoryTraits> reading_traits(const NetGraph& graph) {
  std::vector<MemoryTraits> all;
  for (const GraphNode& node : graph.nodes) {
    MemoryTraits& traits = all.emplace_back();
    traits.backward_reads_bottom.assign(node.bottoms.size(), true);
    traits.backward_reads_top.assign(node.tops.size(), true);
    traits.values_may_share.assign(node.bottoms.size(),
                                   std::vector<bool>(node.tops.size(), false));
    traits.gradients_may_share = traits.values_may_share;
  }
  all[0].keeps_tops = true;
  return all;
}

// An input, which has no gradient, and `depth` nodes one after another; the last has a loss.
SmallGraph deep_chain(std::size_t depth) {
  SmallGraph small(depth + 1);
  small.add({}, {0}).needs_backward = false;
  small.graph.blobs[0].needs_grad = false;
  for (std::size_t i = 0; i < depth; ++i) small.add({i}, {i + 1});
  small.graph.nodes[1].propagate = {false};
  small.graph.nodes.back().loss_weights = {1.0F};
  return small;
}

std::optional<std::int64_t> place_of(const MemoryPlan& plan, std::size_t blob, bool is_grad) {
  for (const MemoryPlan::Place& place : plan.places) {
    if (place.blob == blob && place.is_grad == is_grad) return place.offset;
  }
  return std::nullopt;
}

TEST_CASE("a graph that does not train needs two blobs at a time, and its input", "[plan]") {
  const SmallGraph small = deep_chain(9);
  const auto traits = reading_traits(small.graph);
  // The loss weights lie in the last blob's gradient.
  const MemoryPlan plan = plan_memory(small.graph, traits, false, {{9}, {}});
  CHECK(plan.floats == (2 + 1 + 1) * kElements);
  CHECK(plan.unshared_floats == 11 * kElements);
  CHECK(plan_memory(small.graph, traits, false, {{}, {0, 1, 2, 3}}).floats == 7 * kElements);
}

TEST_CASE("one that trains keeps values until they are read backward", "[plan]") {
  const SmallGraph small = deep_chain(5);
  auto traits = reading_traits(small.graph);
  const MemoryPlan plan = plan_memory(small.graph, traits, true, {{5}, {}});
  // At the loss: six values, one gradient; then the first gradient that is made beside it.
  CHECK(plan.floats == 8 * kElements);
  CHECK(place_of(plan, 0, false).has_value());
  CHECK_FALSE(place_of(plan, 0, true).has_value());
  for (MemoryTraits& each : traits) {
    each.backward_reads_bottom.assign(each.backward_reads_bottom.size(), false);
    each.backward_reads_top.assign(each.backward_reads_top.size(), false);
  }
  CHECK(plan_memory(small.graph, traits, true, {{}, {}}).floats == 4 * kElements);
}

TEST_CASE("a node that may work in place does where nobody reads its bottom again", "[plan]") {
  const SmallGraph small = deep_chain(3);
  auto traits = reading_traits(small.graph);
  traits[2].values_may_share = traits[2].gradients_may_share = {{true}};
  const MemoryPlan reads = plan_memory(small.graph, traits, true, {{}, {}});
  CHECK(place_of(reads, 1, false) != place_of(reads, 2, false));
  CHECK(place_of(reads, 1, true) == place_of(reads, 2, true));
  const MemoryPlan test = plan_memory(small.graph, traits, false, {{}, {}});
  CHECK(place_of(test, 1, false) == place_of(test, 2, false));
  SmallGraph varying = small;
  varying.graph.nodes[2].shapes_vary = true;
  const MemoryPlan apart = plan_memory(varying.graph, traits, false, {{}, {}});
  CHECK(place_of(apart, 1, false) != place_of(apart, 2, false));
}

TEST_CASE("blobs that share memory are one array, as large as the largest", "[plan]") {
  SmallGraph small = deep_chain(3);
  small.graph.blobs[2].values = 1;
  small.graph.blobs[2].shape = {2, 16, 6, 3};
  const MemoryPlan plan =
      plan_memory(small.graph, reading_traits(small.graph), false, {{}, {0, 1, 2, 3}});
  CHECK_FALSE(place_of(plan, 1, false).has_value());
  CHECK(place_of(plan, 2, false).has_value());
  CHECK(plan.unshared_floats == (1 + 2 + 1 + 1) * kElements);
}

TEST_CASE("what is read but never written lies where nothing else does", "[plan]") {
  SmallGraph small(4);
  small.add({}, {0}).needs_backward = false;
  small.graph.blobs[0].needs_grad = false;
  small.add({0}, {1, 2}).propagate = {false};
  small.add({1}, {3}).loss_weights = {1.0F};
  const auto traits = reading_traits(small.graph);
  const MemoryPlan plan = plan_memory(small.graph, traits, true, {{}, {}});
  const std::optional<std::int64_t> zeros = place_of(plan, 2, true);
  REQUIRE(zeros.has_value());
  for (const MemoryPlan::Place& place : plan.places) {
    const bool is_it = place.blob == 2 && place.is_grad;
    CHECK((is_it || place.offset + kElements <= *zeros || place.offset >= *zeros + kElements));
  }
}

}  // namespace
}  // namespace speedo
