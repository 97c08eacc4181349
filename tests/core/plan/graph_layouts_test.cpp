#include "core/plan/layout_plan.hpp"
#include "core/plan/layout_sides.hpp"
#include "small_graph.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

const LayoutTraits kPlainOnly{LayoutRule::kPlain};
const LayoutTraits kAnyLayout{LayoutRule::kSame};
const LayoutTraits kNativeOnly{LayoutRule::kNative};

// The layers of the nodes in order, -1 for a Reorder.
std::vector<int> layers_of(const NetGraph& graph) {
  std::vector<int> layers;
  for (const GraphNode& node : graph.nodes) {
    layers.push_back(node.is_reorder() ? -1 : static_cast<int>(node.layer));
  }
  return layers;
}

// input -> a (native) -> b (any) -> c (plain)
SmallGraph one_chain() {
  SmallGraph small(4);
  small.add({}, {0});
  small.add({0}, {1});
  small.add({1}, {2});
  small.add({2}, {3});
  return small;
}

TEST_CASE("a graph is reordered where a reader needs another layout", "[plan]") {
  const SmallGraph small = one_chain();
  const std::vector<LayoutTraits> traits{kPlainOnly, kNativeOnly, kAnyLayout, kPlainOnly};
  const NetGraph plan = plan_layouts(LayoutKind::kBlocked8, small.graph, traits);
  CHECK(layers_of(plan) == std::vector<int>{0, -1, 1, 2, -1, 3});
  const GraphNode& reorder = plan.nodes[1];
  CHECK(reorder.bottoms == Indices{0});
  CHECK(reorder.tops == Indices{4});
  CHECK(reorder.needs_backward);
  CHECK(plan.nodes[2].bottoms == Indices{4});
  for (const std::size_t blob : {1, 2, 4}) CHECK(plan.blobs[blob].layout.block == 8);
  for (const std::size_t blob : {0, 3, 5}) CHECK(plan.blobs[blob].layout.is_plain());
  CHECK(layers_of(plan_layouts(LayoutKind::kPlain, small.graph, traits)) ==
        std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a native node that takes a plain bottom has it as it is", "[plan]") {
  std::vector<LayoutTraits> traits{kPlainOnly, kNativeOnly, kAnyLayout, kPlainOnly};
  traits[1].takes_plain_bottom = true;
  const NetGraph plan = plan_layouts(LayoutKind::kChannelsLast, one_chain().graph, traits);
  CHECK(layers_of(plan) == std::vector<int>{0, 1, 2, -1, 3});
}

TEST_CASE("rules that a layout would break make their nodes plain", "[plan]") {
  SmallGraph small = one_chain();
  const auto sides = [&](LayoutRule rule, const Shape& shape) {
    for (GraphBlob& blob : small.graph.blobs) blob.shape = shape;
    return choose_native_nodes(LayoutKind::kBlocked16, small.graph,
                               std::vector<LayoutTraits>{kPlainOnly, kNativeOnly, {rule},
                                                         kNativeOnly});
  };
  using Sides = std::vector<bool>;
  CHECK(sides(LayoutRule::kSame, {2, 20, 3, 3}) == Sides{false, true, true, true});
  CHECK(sides(LayoutRule::kSameUnpadded, {2, 32, 3, 3}) == Sides{false, true, true, true});
  CHECK(sides(LayoutRule::kSameUnpadded, {2, 20, 3, 3}) == Sides{false, true, false, true});
  CHECK(sides(LayoutRule::kNative, {20}) == Sides(4, false));
  small.graph.nodes[2].loss_weights = {0.1F};
  CHECK(sides(LayoutRule::kSame, {2, 32, 3, 3}) == Sides{false, true, false, true});
  small.graph.nodes[1].shapes_vary = true;
  CHECK(sides(LayoutRule::kSame, {2, 32, 3, 3}) == Sides{false, false, false, true});
}

TEST_CASE("readers of the same values have one Reorder node", "[plan]") {
  // A native node, a Split of its top, two native readers and two plain ones, of which one does not
  // propagate.
  SmallGraph small(10);
  small.add({}, {0});
  small.add({0}, {1});
  small.add({1}, {2, 3, 4, 5});
  small.add({2}, {6});
  small.add({3}, {7}).propagate = {false};
  small.add({4}, {8});
  small.add({5}, {9});
  LayoutTraits split = kAnyLayout;
  for (const std::size_t top : {0, 1, 2, 3}) split.shared_tops.push_back({top, 0, false});
  LayoutTraits first = kNativeOnly;
  first.takes_plain_bottom = true;
  const std::vector<LayoutTraits> traits{kPlainOnly, first,       split,      kPlainOnly,
                                         kPlainOnly, kNativeOnly, kNativeOnly};
  const NetGraph plan = plan_layouts(LayoutKind::kBlocked8, small.graph, traits);
  REQUIRE(layers_of(plan) == std::vector<int>{0, 1, 2, -1, 3, 4, 5, 6});
  const GraphNode& reorder = plan.nodes[3];
  CHECK(reorder.bottoms == Indices{2, 3});
  CHECK(reorder.tops == Indices{10, 11});
  CHECK(reorder.propagate == std::vector<bool>{true, false});
  for (const std::size_t blob : {2, 3, 4, 5}) {
    CHECK(plan.blobs[blob].values == 1);
    CHECK(plan.blobs[blob].gradient == blob);
  }
  CHECK(plan.blobs[11].values == plan.blobs[10].values);
  CHECK(plan.blobs[11].gradient != plan.blobs[10].gradient);
}

TEST_CASE("a layout of the same bytes shares all memory", "[plan]") {
  SmallGraph small = one_chain();
  for (GraphBlob& blob : small.graph.blobs) blob.shape = {2, 16, 1, 1};
  const NetGraph plan =
      plan_layouts(LayoutKind::kBlocked8, small.graph,
                   std::vector<LayoutTraits>{kPlainOnly, kNativeOnly, kNativeOnly, kPlainOnly});
  CHECK(layers_of(plan) == std::vector<int>{0, -1, 1, 2, -1, 3});
  CHECK(plan.blobs[4].values == 0);
  CHECK(plan.blobs[4].gradient == 0);
  CHECK(plan.blobs[5].values == 2);
}

}  // namespace
}  // namespace speedo
