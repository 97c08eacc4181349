#include "gpu/elementwise/elementwise.hpp"

#include <cmath>

#include <speedo/base/random.hpp>

#include "gpu/launch/launch.hpp"
#include "gpu/support/divisor.hpp"
#include "gpu/support/elements.hpp"
#include "gpu/support/layout_index.hpp"

namespace speedo::gpu {
namespace {

struct FillKernel {
  static constexpr const char* kName = "fill";
  std::int64_t n;
  float value;
  ArrayTo x;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for_each_element(lane, n, x.type, by_fours,
                     [&](auto at) { at.store(x, at.make([&](std::int64_t) { return value; })); });
  }
};

// Columns are counted in pieces: single elements, or fours.
struct CopyRowsKernel {
  static constexpr const char* kName = "copy_rows";
  std::int64_t pieces;  // in all
  Divisor columns;
  ArrayFrom from;
  ArrayTo to;
  std::int64_t from_stride, to_stride;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    with_type(from.type, [&](auto is) {
      constexpr ElementType kType = decltype(is)::value;
      for (std::int64_t i = lane.first(); i < pieces; i += lane.stride()) {
        const std::int64_t row = columns.quotient(i), column = i - row * columns.value();
        const std::int64_t source = row * from_stride, target = row * to_stride;
        if (by_fours) {
          const FourAt<kType> place{target + 4 * column};
          place.store(to, FourAt<kType>{source + 4 * column}.load(from));
        } else {
          to.put<kType>(target + column, from.get<kType>(source + column));
        }
      }
    });
  }
};

struct DropoutKernel {
  static constexpr const char* kName = "dropout_mask";
  std::int64_t n;
  PlainIndex plain;
  const std::uint64_t* seed_at;   // null: the seed
  std::uint64_t seed, kept_from;  // of 24 bits
  float scale;
  ArrayTo mask;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const std::uint64_t first = seed_at == nullptr ? seed : *seed_at;
    for_each_element(lane, n, mask.type, by_fours, [&](auto at) {
      at.store(mask, at.make([&](std::int64_t i) {
        const std::int64_t place = plain.at(i);
        const std::uint64_t bits = mix64(first + static_cast<std::uint64_t>(place)) >> 40U;
        return place >= 0 && bits >= kept_from ? scale : 0.0F;
      }));
    });
  }
};

}  // namespace

void copy(Queue& queue, Elements n, const float* x, float* y) {
  if (n.count == 0 || x == y) return;
  queue.driver.copy(queue.stream, y, x,
                    static_cast<std::size_t>(n.count * bytes_of_element(n.type)));
}

void fill(Queue& queue, Elements n, float value, float* x) {
  if (n.count == 0) return;
  const ArrayTo to{x, n.type};
  launch(queue, grid_for(queue, n.count, 4), FillKernel{n.count, value, to, are_aligned(to)});
}

void copy_rows(Queue& queue, std::int64_t rows, Elements columns, RowsFrom from, RowsTo to) {
  if (rows * columns.count == 0) return;
  const ArrayFrom source{from.first, columns.type};
  const ArrayTo target{to.first, columns.type};
  const bool by_fours = are_aligned(source, target) && columns.count % 4 == 0 &&
                        from.stride % 4 == 0 && to.stride % 4 == 0;
  const std::int64_t width = by_fours ? columns.count / 4 : columns.count;
  launch(queue, grid_for(queue, rows * width),
         CopyRowsKernel{rows * width, Divisor(width), source, target, from.stride, to.stride,
                        by_fours});
}

void dropout_mask(Queue& queue, const ChannelView& view, float ratio, std::uint64_t seed,
                  float* mask) {
  const std::int64_t n = view.shape.storage_count(view.layout);
  if (n == 0) return;
  const ArrayTo to{mask, view.layout.type};
  const auto kept_from = static_cast<std::uint64_t>(std::ceil(ratio * 16777216.0F));
  launch(queue, grid_for(queue, n, 4),
         DropoutKernel{n, PlainIndex(view.shape, view.layout), queue.driver.vary(seed), seed,
                       kept_from, 1.0F / (1.0F - ratio), to, are_aligned(to)});
}

}  // namespace speedo::gpu
