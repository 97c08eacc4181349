#include "gpu/elementwise/elementwise.hpp"

#include <cmath>

#include <speedo/base/random.hpp>

#include "gpu/launch/launch.hpp"
#include "gpu/support/divisor.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {
namespace {

struct FillKernel {
  static constexpr const char* kName = "fill";
  std::int64_t n;
  float value;
  float* x;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for_each_element(lane, n, by_fours,
                     [&](auto at) { at.store(x, at.make([&](std::int64_t) { return value; })); });
  }
};

// Columns are counted in pieces: single elements, or fours.
struct CopyRowsKernel {
  static constexpr const char* kName = "copy_rows";
  std::int64_t pieces;  // in all
  Divisor columns;
  RowsFrom from;
  RowsTo to;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < pieces; i += lane.stride()) {
      const std::int64_t row = columns.quotient(i), column = i - row * columns.value();
      const float* const source = from.first + row * from.stride;
      float* const target = to.first + row * to.stride;
      if (by_fours) {
        const FourAt at{4 * column};
        at.store(target, at.load(source));
      } else {
        target[column] = source[column];
      }
    }
  }
};

struct DropoutKernel {
  static constexpr const char* kName = "dropout_mask";
  std::int64_t n;
  const std::uint64_t* seed_at;  // null: the seed
  std::uint64_t seed, kept_from;  // of 24 bits
  float scale;
  float* mask;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const std::uint64_t first = seed_at == nullptr ? seed : *seed_at;
    for_each_element(lane, n, by_fours, [&](auto at) {
      at.store(mask, at.make([&](std::int64_t i) {
        const std::uint64_t bits = mix64(first + static_cast<std::uint64_t>(i)) >> 40U;
        return bits >= kept_from ? scale : 0.0F;
      }));
    });
  }
};

}  // namespace

void copy(Queue& queue, std::int64_t n, const float* x, float* y) {
  if (n == 0 || x == y) return;
  queue.driver.copy(queue.stream, y, x, static_cast<std::size_t>(n) * sizeof(float));
}

void fill(Queue& queue, std::int64_t n, float value, float* x) {
  if (n == 0) return;
  launch(queue, grid_for(queue, n, 4), FillKernel{n, value, x, are_aligned(x)});
}

void copy_rows(Queue& queue, std::int64_t rows, std::int64_t columns, RowsFrom from, RowsTo to) {
  if (rows * columns == 0) return;
  const bool by_fours = are_aligned(from.first, to.first) && columns % 4 == 0 &&
                        from.stride % 4 == 0 && to.stride % 4 == 0;
  const std::int64_t width = by_fours ? columns / 4 : columns;
  launch(queue, grid_for(queue, rows * width),
         CopyRowsKernel{rows * width, Divisor(width), from, to, by_fours});
}

void dropout_mask(Queue& queue, std::int64_t n, float ratio, std::uint64_t seed, float* mask) {
  if (n == 0) return;
  const auto kept_from = static_cast<std::uint64_t>(std::ceil(ratio * 16777216.0F));
  launch(queue, grid_for(queue, n, 4),
         DropoutKernel{n, queue.driver.vary(seed), seed, kept_from, 1.0F / (1.0F - ratio), mask,
                       are_aligned(mask)});
}

}  // namespace speedo::gpu
