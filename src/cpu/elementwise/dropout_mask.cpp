#include "cpu/elementwise/dropout_mask.hpp"

#include <algorithm>
#include <cmath>

#include <speedo/base/random.hpp>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/dropout_mask.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

#ifndef SPEEDO_CPU_DROPOUT_MASK_ROWS
#define SPEEDO_CPU_DROPOUT_MASK_ROWS
namespace speedo::cpu {
namespace {

// Rows of elements that lie side by side, whose places in plain order are a stride apart.
struct MaskRows {
  std::int64_t width, stride = 1;
  float ratio;
  std::uint64_t seed;
};

}  // namespace
}  // namespace speedo::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// Of `count` elements, the first of them at `place` in plain order. The 24 random bits are compared
// as integers: ratio * 2^24 is exact in a float.
HWY_FLATTEN void mask_row_kernel(const MaskRows& rows, std::int64_t count, std::int64_t place,
                                 float* mask) {
  const float scale = 1.0F / (1.0F - rows.ratio);
  const auto threshold = static_cast<std::uint64_t>(std::ceil(rows.ratio * 16777216.0F));
  const auto stride = static_cast<std::uint64_t>(rows.stride);
  const std::uint64_t first = rows.seed + static_cast<std::uint64_t>(place);
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint64_t> d;
  const hn::ScalableTag<std::uint32_t> d32;
  const hn::RebindToSigned<decltype(d32)> di32;
  const F32 df;
  const auto kept = hn::Set(df, scale);
  const auto below = hn::Set(di32, static_cast<std::int32_t>(threshold) - 1);
  // mix64() of base/random.hpp, but for its last shift: the upper halves are enough.
  const auto mixed = [&](auto counter) {
    auto z = counter;
    z = hn::Mul(hn::Xor(z, hn::ShiftRight<30>(z)), hn::Set(d, 0xbf58476d1ce4e5b9U));
    z = hn::Mul(hn::Xor(z, hn::ShiftRight<27>(z)), hn::Set(d, 0x94d049bb133111ebU));
    return hn::BitCast(d32, hn::Xor(z, hn::ShiftRight<31>(z)));
  };
  const std::int64_t step = lanes(d);
  const auto advance = hn::Set(d, static_cast<std::uint64_t>(step) * stride);
  auto counter =
      hn::Add(hn::Mul(hn::Iota(d, 0), hn::Set(d, stride)), hn::Set(d, first + 0x9e3779b97f4a7c15U));
  for (; i + 2 * step <= count; i += 2 * step) {
    const auto low = mixed(counter);
    counter = hn::Add(counter, advance);
    const auto high = mixed(counter);
    counter = hn::Add(counter, advance);
    const auto bits = hn::ShiftRight<8>(hn::ConcatOdd(d32, high, low));
    const auto is_kept = hn::Gt(hn::BitCast(di32, bits), below);
    hn::StoreU(hn::IfThenElseZero(hn::RebindMask(df, is_kept), kept), df, mask + i);
  }
#endif
  for (; i < count; ++i) {
    const std::uint64_t bits = mix64(first + static_cast<std::uint64_t>(i) * stride) >> 40U;
    mask[i] = bits >= threshold ? scale : 0.0F;
  }
}

// Rows `first` to `last` of an array with blocks: one for each sample, block and position.
HWY_FLATTEN void mask_rows_kernel(const MaskRows& rows, const ArrayShape& shape, std::int64_t first,
                                  std::int64_t last, float* mask) {
  const std::int64_t width = rows.width, blocks = (shape.channels + width - 1) / width;
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t area = row / shape.spatial, channel = area % blocks * width;
    const std::int64_t plane = area / blocks * shape.channels + channel;
    const std::int64_t used = std::min(width, shape.channels - channel);
    float* const to = mask + row * width;
    mask_row_kernel(rows, used, plane * shape.spatial + row % shape.spatial, to);
    std::fill(to + used, to + width, 0.0F);
  }
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(mask_row_kernel);
HWY_EXPORT(mask_rows_kernel);

// Elements that make it worth waking another thread.
constexpr std::int64_t kMaskGrain = 16384;

}  // namespace

void dropout_mask(ThreadPool& pool, const ChannelView& view, float ratio, std::uint64_t seed,
                  float* mask) {
  const ArrayShape& shape = view.shape;
  const std::int64_t width = view.layout.block, all = shape.storage_count(view.layout);
  if (all == 0) return;
  const MaskRows rows{width, width == 1 ? 1 : shape.spatial, ratio, seed};
  if (width == 1) {
    pool.split(all, kMaskGrain, [&](std::int64_t first, std::int64_t last, int) {
      HWY_DYNAMIC_DISPATCH(mask_row_kernel)(rows, last - first, first, mask + first);
    });
    return;
  }
  const std::int64_t grain = std::max<std::int64_t>(kMaskGrain / width, 1);
  pool.split(all / width, grain, [&](std::int64_t first, std::int64_t last, int) {
    HWY_DYNAMIC_DISPATCH(mask_rows_kernel)(rows, shape, first, last, mask);
  });
}

}  // namespace speedo::cpu
#endif
