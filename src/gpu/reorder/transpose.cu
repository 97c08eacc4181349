// Through tiles in shared memory, so that threads read and write side by side in both arrays. Of a
// matrix whose rows are short, a tile has whole rows: they are one piece of memory. Within a tile
// places are ints, and a thread has several elements under way before it waits for the first.

#include "gpu/reorder/transpose.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <speedo/base/round_up.hpp>

#include "gpu/launch/launch.hpp"
#include "gpu/support/divisor.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {
namespace {

constexpr int kTransposeThreads = 256, kTransposeElements = 4096;  // of a tile
constexpr int kSquareLog = 6, kSquare = 1 << kSquareLog;
constexpr int kWholeMax = 128;  // how long rows are that a tile has whole

// Of an element in shared memory. Neighbours of a row and those of a column are in different banks.
SPEEDO_HOST_DEVICE constexpr int place_of(int i) { return i + (i >> 5) + (i >> 10); }

template <class Body>
SPEEDO_HOST_DEVICE void with_flag(bool flag, const Body& body) {
  if (flag) {
    body(std::true_type());
  } else {
    body(std::false_type());
  }
}

// One of both arrays has matrices of `lines` x `width` elements: the array along. The other one,
// across, has `width` x `lines`. A tile's elements are numbered line by line.
struct TransposeShape {
  int lines, width;
  int lines_log, tile_width;  // of a tile: how many lines, a power of two, and their length
  Divisor line_tiles, width_tiles;
  bool source_is_along, along_by_fours, across_by_fours;
};

template <bool kWhole>
struct TransposeKernel {
  static constexpr const char* kName = kWhole ? "transpose_whole" : "transpose_square";
  static constexpr int kAtOnce = 4;
  TransposeShape shape;
  ArrayFrom source;
  ArrayTo target;
  bool adds;

  SPEEDO_HOST_DEVICE int phases() const { return 2; }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    const bool is_along = (phase == 0) == shape.source_is_along;
    const bool by_fours = is_along ? shape.along_by_fours : shape.across_by_fours;
    with_type(phase == 0 ? source.type : target.type, [&](auto is) {
      constexpr ElementType kType = decltype(is)::value;
      with_flag(is_along, [&](auto along) {
        with_flag(by_fours, [&](auto fours) {
          constexpr bool kAlong = decltype(along)::value;
          using At = std::conditional_t<decltype(fours)::value, FourAt<kType>, OneAt<kType>>;
          if (phase == 0) {
            load<At, kAlong>(lane);
          } else if (adds) {
            store<At, kAlong, true>(lane);
          } else {
            store<At, kAlong, false>(lane);
          }
        });
      });
    });
  }

 private:
  template <class At>
  using ValuesOf = decltype(At{0}.load(ArrayFrom()));
  template <class At>
  static constexpr int kCount = sizeof(ValuesOf<At>) / sizeof(float);

  // Where a block's tile begins in the array, and how much of it the matrix has.
  struct Tile {
    std::int64_t first;
    int lines, width;
  };
  template <bool kAlong>
  SPEEDO_HOST_DEVICE Tile tile_of(std::int64_t block) const {
    const std::int64_t rest = shape.line_tiles.quotient(block);
    const std::int64_t matrix = shape.width_tiles.quotient(rest);
    const auto line = static_cast<int>(block - rest * shape.line_tiles.value()) << shape.lines_log;
    const int column =
        static_cast<int>(rest - matrix * shape.width_tiles.value()) * shape.tile_width;
    const std::int64_t first = matrix * shape.lines * shape.width;
    const int lines = shape.lines - line, width = shape.width - column;
    const int within = kAlong ? line * shape.width + column : column * shape.lines + line;
    return {first + within, lines < 1 << shape.lines_log ? lines : 1 << shape.lines_log,
            width < shape.tile_width ? width : shape.tile_width};
  }

  // Of an element, or the first of four: its number in the tile, and where it lies behind the
  // tile's first in the array.
  struct Spot {
    int number, offset;
    bool exists;
  };
  template <bool kAlong>
  SPEEDO_HOST_DEVICE Spot spot_of(const Tile& tile, int i) const {
    if constexpr (!kAlong) {
      const int column = i >> shape.lines_log, line = i & ((1 << shape.lines_log) - 1);
      return {line * shape.tile_width + column, column * shape.lines + line,
              column < tile.width && line < tile.lines};
    } else if constexpr (kWhole) {
      return {i, i, i < tile.lines * shape.width};
    } else {
      const int line = i >> kSquareLog, column = i & (kSquare - 1);
      return {i, line * shape.width + column, line < tile.lines && column < tile.width};
    }
  }
  // The value of the spot's element k in shared memory. Four neighbours along a line, the first of
  // them a fourth one, are neighbours there too.
  template <bool kAlong>
  SPEEDO_HOST_DEVICE float& in_tile(const Lane& lane, const Spot& spot, int k) const {
    const int at =
        kAlong ? place_of(spot.number) + k : place_of(spot.number + k * shape.tile_width);
    return reinterpret_cast<float*>(lane.shared)[at];
  }
  template <bool kAlong>
  SPEEDO_HOST_DEVICE void put(const Lane& lane, const Spot& spot, float value) const {
    in_tile<kAlong>(lane, spot, 0) = value;
  }
  template <bool kAlong>
  SPEEDO_HOST_DEVICE void put(const Lane& lane, const Spot& spot, const Floats4& values) const {
    in_tile<kAlong>(lane, spot, 0) = values.x;
    in_tile<kAlong>(lane, spot, 1) = values.y;
    in_tile<kAlong>(lane, spot, 2) = values.z;
    in_tile<kAlong>(lane, spot, 3) = values.w;
  }
  template <class At, bool kAlong>
  SPEEDO_HOST_DEVICE ValuesOf<At> get(const Lane& lane, const Spot& spot) const {
    if constexpr (kCount<At> == 1) {
      return in_tile<kAlong>(lane, spot, 0);
    } else {
      return {in_tile<kAlong>(lane, spot, 0), in_tile<kAlong>(lane, spot, 1),
              in_tile<kAlong>(lane, spot, 2), in_tile<kAlong>(lane, spot, 3)};
    }
  }

  template <class At, bool kAlong>
  SPEEDO_HOST_DEVICE void load(const Lane& lane) const {
    const Tile tile = tile_of<kAlong>(lane.block);
    for_each_few<At, kAlong>(lane, tile, [&](const Spot* spots) {
      ValuesOf<At> values[kAtOnce] = {};
      for (int k = 0; k < kAtOnce; ++k) {
        if (spots[k].exists) values[k] = At{tile.first + spots[k].offset}.load(source);
      }
      for (int k = 0; k < kAtOnce; ++k) {
        if (spots[k].exists) put<kAlong>(lane, spots[k], values[k]);
      }
    });
  }
  template <class At, bool kAlong, bool kAdds>
  SPEEDO_HOST_DEVICE void store(const Lane& lane) const {
    const Tile tile = tile_of<kAlong>(lane.block);
    for_each_few<At, kAlong>(lane, tile, [&](const Spot* spots) {
      ValuesOf<At> values[kAtOnce] = {}, sums[kAtOnce] = {};
      for (int k = 0; k < kAtOnce; ++k) {
        if (!spots[k].exists) continue;
        if constexpr (kAdds) sums[k] = At{tile.first + spots[k].offset}.load(ArrayFrom(target));
        values[k] = get<At, kAlong>(lane, spots[k]);
      }
      for (int k = 0; k < kAtOnce; ++k) {
        if (!spots[k].exists) continue;
        if constexpr (kAdds) {
          values[k] = each([](float a, float b) { return a + b; }, sums[k], values[k]);
        }
        At{tile.first + spots[k].offset}.store(target, values[k]);
      }
    });
  }

  // Calls body(kAtOnce spots) for all of the tile divided over the block's threads.
  template <class At, bool kAlong, class Body>
  SPEEDO_HOST_DEVICE void for_each_few(const Lane& lane, const Tile& tile, const Body& body) const {
    const int count = shape.tile_width << shape.lines_log;
    const int step = kCount<At> * lane.threads;
    for (int first = kCount<At> * lane.thread; first < count; first += kAtOnce * step) {
      Spot spots[kAtOnce];
      for (int k = 0; k < kAtOnce; ++k) spots[k] = spot_of<kAlong>(tile, first + k * step);
      body(spots);
    }
  }
};

// The logarithm of how many lines of a width a tile has: 4 at least, for fours.
int lines_log_of(std::int64_t lines, int width) {
  int log = 2;
  while ((std::int64_t{1} << log) < lines && width << (log + 1) <= kTransposeElements) ++log;
  return log;
}

int tiles_of(int count, int side) { return (count - 1) / side + 1; }

// So many that each has the same number of elements, or fours, where they need several turns.
int threads_for(int elements, bool by_fours) {
  const int wanted = elements / (by_fours ? 4 : 1);
  return static_cast<int>(round_up(tiles_of(wanted, tiles_of(wanted, kTransposeThreads)), 32));
}

template <bool kWhole>
void transpose_tiles(Queue& queue, const Transposition& what, TransposeShape shape) {
  const std::int64_t fours = kWhole ? std::int64_t{shape.lines} * shape.width : shape.width;
  const ArrayFrom target = what.target;
  const auto& [along, across] =
      shape.source_is_along ? std::pair(what.source, target) : std::pair(target, what.source);
  shape.along_by_fours = fours % 4 == 0 && is_aligned(along);
  shape.across_by_fours = shape.lines % 4 == 0 && is_aligned(across);
  shape.tile_width = kWhole ? shape.width : kSquare;
  shape.lines_log = kWhole ? lines_log_of(shape.lines, shape.width) : kSquareLog;
  const int line_tiles = tiles_of(shape.lines, 1 << shape.lines_log);
  const int width_tiles = tiles_of(shape.width, shape.tile_width);
  shape.line_tiles = Divisor(line_tiles);
  shape.width_tiles = Divisor(width_tiles);
  const int elements = shape.tile_width << shape.lines_log;
  const int threads = threads_for(elements, shape.along_by_fours && shape.across_by_fours);
  const auto shared = static_cast<std::size_t>(place_of(elements - 1) + 1) * sizeof(float);
  launch(queue, Grid{what.count * line_tiles * width_tiles, threads, shared},
         TransposeKernel<kWhole>{shape, what.source, what.target, what.adds});
}

}  // namespace

void transpose(Queue& queue, const Transposition& what) {
  const auto rows = static_cast<int>(what.rows), columns = static_cast<int>(what.columns);
  TransposeShape shape{};
  shape.source_is_along = columns <= rows;
  shape.lines = std::max(rows, columns);
  shape.width = std::min(rows, columns);
  if (shape.width <= kWholeMax) return transpose_tiles<true>(queue, what, shape);
  transpose_tiles<false>(queue, what, shape);
}

}  // namespace speedo::gpu
