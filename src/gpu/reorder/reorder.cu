// Conversions where nothing moves, transpositions where matrices do; where there is padding, or
// both arrays have blocks, a kernel for any pair of layouts. In it neighbouring threads read
// neighbours, and write neighbours, through a tile in shared memory: side by side lie positions in
// the plain order, channels in all others.

#include "gpu/reorder/reorder.hpp"

#include <algorithm>

#include "gpu/elementwise/elementwise.hpp"
#include "gpu/launch/launch.hpp"
#include "gpu/reorder/convert.hpp"
#include "gpu/reorder/transpose.hpp"
#include "gpu/support/array.hpp"
#include "gpu/support/divisor.hpp"

namespace speedo::gpu {
namespace {

constexpr int kTileThreads = 256, kTileFloats = 1024, kTileSide = 32;

// Of an array of a layout: of how many channels there is a place, and where an element lies.
struct LayoutPlaces {
  std::int64_t channels, spatial, blocks;
  Divisor block;

  LayoutPlaces(const ArrayShape& shape, Layout layout)
      : channels(layout.channels(shape.channels)),
        spatial(shape.spatial),
        blocks(channels / layout.block),
        block(layout.block) {}
  SPEEDO_HOST_DEVICE std::int64_t at(std::int64_t sample, std::int64_t c, std::int64_t p) const {
    const std::int64_t k = block.quotient(c), b = block.value();
    return ((sample * blocks + k) * spatial + p) * b + c - k * b;
  }
};

struct ReorderKernel {
  static constexpr const char* kName = "reorder";
  std::int64_t channels;  // without padding
  LayoutPlaces from, to;
  int positions_log, channels_log;  // of a tile's sides, which are powers of two
  Divisor position_tiles, channel_tiles;
  ArrayFrom source;
  ArrayTo target;
  bool adds;

  SPEEDO_HOST_DEVICE int phases() const { return 2; }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    with_type((phase == 0 ? ArrayFrom(source) : target).type, [&](auto is) {
      constexpr ElementType kType = decltype(is)::value;
      if (phase == 0) {
        for_each_place(lane, from, [&](float& value, std::int64_t at, bool is_there) {
          value = is_there ? source.get<kType>(at) : 0.0F;
        });
      } else if (adds) {
        for_each_place(lane, to, [&](float value, std::int64_t at, bool) {
          target.put<kType>(at, ArrayFrom(target).get<kType>(at) + value);
        });
      } else {
        for_each_place(lane, to,
                       [&](float value, std::int64_t at, bool) { target.put<kType>(at, value); });
      }
    });
  }

 private:
  // Calls body(its value in the tile, its place in an array of the layout, whether it is no padding
  // of the plain order) for each of the tile's elements that the array has; of `from` all that the
  // other one has.
  template <class Body>
  SPEEDO_HOST_DEVICE void for_each_place(const Lane& lane, const LayoutPlaces& layout,
                                         const Body& body) const {
    auto* const tile = reinterpret_cast<float*>(lane.shared);
    const std::int64_t rest = position_tiles.quotient(lane.block);
    const std::int64_t sample = channel_tiles.quotient(rest);
    const std::int64_t first_p = (lane.block - rest * position_tiles.value()) << positions_log;
    const std::int64_t first_c = (rest - sample * channel_tiles.value()) << channels_log;
    const bool by_position = layout.block.value() == 1;
    for (int e = lane.thread; e < kTileFloats; e += kTileThreads) {
      const int positions = 1 << positions_log;
      const int p = by_position ? e & (positions - 1) : e >> channels_log;
      const int c = by_position ? e >> positions_log : e & ((1 << channels_log) - 1);
      if (first_p + p >= to.spatial || first_c + c >= to.channels) continue;
      body(tile[c * (positions + 1) + p], layout.at(sample, first_c + c, first_p + p),
           first_c + c < channels);
    }
  }
};

int log_of(int side) {
  int log = 0;
  while ((1 << log) < side) ++log;
  return log;
}
// The logarithm of the power of two that so many elements need, of a side at most.
int side_log(std::int64_t count) {
  int side = 1;
  while (side < kTileSide && side < count) side *= 2;
  return log_of(side);
}

struct Reordered {
  ArrayFrom source;
  Layout from;
  ArrayTo target;
  Layout to;
  bool adds;
};

void queue_tiles(Queue& queue, const ArrayShape& shape, const Reordered& what) {
  const auto& [source, from, target, to, adds] = what;
  // A tile is as long as its other side is short.
  int positions_log = side_log(shape.spatial), channels_log = log_of(kTileFloats) - positions_log;
  if (shape.channels < kTileSide) {
    channels_log = side_log(to.channels(shape.channels));
    positions_log = log_of(kTileFloats) - channels_log;
  }
  const auto tiles = [](std::int64_t count, int log) {
    return (count + (std::int64_t{1} << log) - 1) >> log;
  };
  const std::int64_t position_tiles = tiles(shape.spatial, positions_log);
  const std::int64_t channel_tiles = tiles(to.channels(shape.channels), channels_log);
  const auto rows = static_cast<std::size_t>(1 << channels_log);
  const auto row = static_cast<std::size_t>((1 << positions_log) + 1);
  launch(
      queue,
      Grid{shape.batch * position_tiles * channel_tiles, kTileThreads, rows * row * sizeof(float)},
      ReorderKernel{shape.channels, LayoutPlaces(shape, from), LayoutPlaces(shape, to),
                    positions_log, channels_log, Divisor(position_tiles), Divisor(channel_tiles),
                    source, target, adds});
}

// Whether elements lie in the same order in both, padding included.
bool have_one_order(const ArrayShape& shape, Layout a, Layout b) {
  if (a.block == b.block) return true;
  return shape.spatial == 1 && !a.is_padded(shape.channels) && !b.is_padded(shape.channels);
}

void queue_reorder(Queue& queue, const ArrayShape& shape, const Reordered& what) {
  const auto& [source, from, target, to, adds] = what;
  if (have_one_order(shape, from, to)) {
    return convert(queue, shape.storage_count(to), source, target, adds);
  }
  // Between the plain order and blocks without padding: of each block, channels by positions.
  const std::int64_t block = std::max(from.block, to.block);
  const bool are_matrices = std::min(from.block, to.block) == 1 && shape.channels % block == 0 &&
                            can_transpose(block, shape.spatial);
  if (!are_matrices) return queue_tiles(queue, shape, what);
  const bool is_plain = from.block == 1;
  transpose(queue, {shape.batch * (shape.channels / block), is_plain ? block : shape.spatial,
                    is_plain ? shape.spatial : block, source, target, adds});
}

}  // namespace

void reorder(Queue& queue, const ArrayShape& shape, const float* source, Layout from, float* target,
             Layout to) {
  const Elements all{shape.storage_count(to), to.type};
  if (all.count == 0) return;
  if (from.type == to.type && have_one_order(shape, from, to)) {
    return copy(queue, all, source, target);
  }
  queue_reorder(queue, shape, {{source, from.type}, from, {target, to.type}, to, false});
}

void add_reordered(Queue& queue, const ArrayShape& shape, const float* source, Layout from,
                   float* target) {
  if (shape.storage_count({}) == 0) return;
  const ElementType type = Layout{}.type;
  queue_reorder(queue, shape, {{source, from.type}, from, {target, type}, Layout{}, true});
}

}  // namespace speedo::gpu
