// Copies between layouts: kernels on the host against the reference, and which one goes over what.

#include "gpu/reorder/reorder.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>

#include "gpu/agreement.hpp"
#include "support/catch.hpp"
#include "support/random_seed.hpp"

namespace speedo::gpu {
namespace {

constexpr ElementType kFloat32 = ElementType::kFloat32, kBfloat16 = ElementType::kBfloat16;

void require_copies(const ArrayShape& shape, Layout from, Layout to) {
  CAPTURE(shape.batch, shape.channels, shape.spatial, from.block, to.block, from.type, to.type);
  require_agreement(0.0, [&](Trial& trial) {
    const float* source = trial.put_array(shape, from, drawn(shape));
    float* target = trial.blank_array(shape, to);
    trial.run([&](Backend& backend) { backend.reorder(shape, source, from, target, to); },
              [&](Queue& queue) { reorder(queue, shape, source, from, target, to); });
    return trial.get_array(shape, to, target);
  });
}

// To what plain floats were before.
void require_sums(const ArrayShape& shape, Layout from) {
  CAPTURE(shape.batch, shape.channels, shape.spatial, from.block, from.type);
  const std::int64_t count = shape.storage_count({});
  require_agreement(0.0, [&](Trial& trial) {
    const float* source = trial.put_array(shape, from, drawn(shape));
    float* target = trial.put(drawn(shape, -3, 3, 2));
    float* plain = trial.blank(count);
    trial.run(
        [&](Backend& backend) {
          backend.reorder(shape, source, from, plain, {});
          for (std::int64_t i = 0; i < count; ++i) target[i] += plain[i];
        },
        [&](Queue& queue) { add_reordered(queue, shape, source, from, target); });
    return trial.get(target, count);
  });
}

TEST_CASE("copies between layouts agree with the reference") {
  const ArrayShape shape = GENERATE(
      ArrayShape{1, 1, 1}, ArrayShape{2, 3, 5}, ArrayShape{3, 16, 49}, ArrayShape{2, 37, 33},
      ArrayShape{5, 100, 1}, ArrayShape{1, 3, 1100}, ArrayShape{0, 4, 3}, ArrayShape{2, 70, 3});
  std::vector<Layout> layouts = stored_layouts(shape.channels);
  layouts.push_back({1, kBfloat16});
  layouts.push_back({8, kBfloat16});
  const Layout from = GENERATE_COPY(from_range(layouts));
  const Layout to = GENERATE_COPY(from_range(layouts));
  require_copies(shape, from, to);
  if (to.is_plain()) require_sums(shape, from);
}

// What goes to the device for a copy, and for its addition to plain floats.
std::string kernels_of(const ArrayShape& shape, Layout from, Layout to) {
  KernelRig rig({});
  Trial trial(rig, {});
  const float* source = trial.put_array(shape, from, drawn(shape));
  float* target = trial.blank_array(shape, to);
  float* sums = trial.put(drawn(shape));
  std::string names;
  const auto run = [&](const auto& queue_it) {
    const std::size_t before = rig.driver.history().size();
    trial.run([](Backend&) {}, queue_it);
    const auto& history = rig.driver.history();
    REQUIRE(history.size() == before + 1);
    names += (names.empty() ? "" : ", ") + history.back();
  };
  run([&](Queue& queue) { reorder(queue, shape, source, from, target, to); });
  run([&](Queue& queue) { add_reordered(queue, shape, source, from, sums); });
  return names;
}

TEST_CASE("a kernel is chosen by what moves between two layouts") {
  const Layout plain{}, rounded{1, kBfloat16};
  const auto last = [](std::int64_t channels) { return Layout{channels, kBfloat16}; };
  // Weights of one position, and arrays of two types.
  CHECK(kernels_of({8, 5, 1}, last(5), plain) == "convert, convert");
  CHECK(kernels_of({8, 5, 1}, rounded, last(5)) == "copy, convert");
  CHECK(kernels_of({3, 5, 7}, rounded, plain) == "convert, convert");
  CHECK(kernels_of({3, 1, 7}, rounded, plain) == "convert, convert");
  // Windows; images of few channels, of few positions, of many of both.
  CHECK(kernels_of({4, 64, 9}, last(64), plain) == "transpose_whole, transpose_whole");
  CHECK(kernels_of({4, 2, 121}, last(2), plain) == "transpose_whole, transpose_whole");
  CHECK(kernels_of({2, 3, 900}, last(3), plain) == "transpose_whole, transpose_whole");
  CHECK(kernels_of({1, 200, 128}, last(200), plain) == "transpose_whole, transpose_whole");
  CHECK(kernels_of({1, 129, 130}, last(129), plain) == "transpose_square, transpose_square");
  // Blocks.
  CHECK(kernels_of({2, 24, 9}, {8}, plain) == "transpose_whole, transpose_whole");
  CHECK(kernels_of({2, 20, 9}, {8}, plain) == "reorder, reorder");
  CHECK(kernels_of({2, 20, 1}, {8}, plain) == "reorder, reorder");
  CHECK(kernels_of({2, 32, 9}, {8}, {16}) == "reorder, transpose_whole");
}

// Sizes at which fours, tiles and turns of a thread end, and others.
std::int64_t drawn_size(Random& random, std::int64_t most) {
  static const std::int64_t kNear[] = {1, 2, 3, 4, 8, 9, 25, 49, 64, 121, 128, 256, 512, 1024};
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
  };
  const std::int64_t near = kNear[below(std::ssize(kNear))];
  const std::int64_t size = below(2) == 0 ? near : below(3) == 0 ? near + 1 : 1 + below(most);
  return std::min(size, most);
}

// Both directions, types and additions of arrays of so many elements at most.
void require_all_of(std::uint64_t seed, int shapes, std::int64_t least, std::int64_t most) {
  Random random(seed);
  for (int i = 0; i < shapes; ++i) {
    constexpr std::int64_t kElementsMax = 40000;
    ArrayShape shape{1, least + drawn_size(random, most), 1};
    shape.spatial = least + drawn_size(random, std::min(most, kElementsMax / shape.channels));
    if (random.below(2) == 0) std::swap(shape.channels, shape.spatial);
    const std::int64_t size = shape.channels * shape.spatial;
    shape.batch = 1 + static_cast<std::int64_t>(random.below(3)) * (size < kElementsMax / 4);
    const auto type = [&] { return random.below(2) == 0 ? kFloat32 : kBfloat16; };
    const Layout plain{1, type()}, last{shape.channels, type()};
    require_copies(shape, plain, last);
    require_copies(shape, last, plain);
    require_sums(shape, last);
    require_sums(shape, plain);
  }
}

TEST_CASE("arrays of any sizes are transposed, converted and added") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1, 2})));
  CAPTURE(seed);
  require_all_of(seed, 25, 0, 1500);
  // More channels and positions than a tile has whole.
  require_all_of(seed, 5, 128, 160);
}

}  // namespace
}  // namespace speedo::gpu
