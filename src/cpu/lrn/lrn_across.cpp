// Sums over windows of channels are computed afresh for each channel: a running sum that adds one
// channel and subtracts another loses all digits after a large one has passed. The scale is
// computed again in the backward pass: that is cheaper than writing it to memory and reading it
// back.

#include "cpu/lrn/lrn_kernels.hpp"

#include <algorithm>
#include <type_traits>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/lrn/lrn_across.cpp"
#endif
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>

#include "cpu/lrn/lrn_power.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

struct Window {
  std::int64_t first, last;
};
HWY_INLINE Window window(const LrnTile& t, std::int64_t channel) {
  return {std::max<std::int64_t>(0, channel - t.size / 2),
          std::min(t.channels, channel + t.size / 2 + 1)};
}

template <class D, class Access>
HWY_INLINE hn::Vec<D> tile_scale(D d, Access access, const LrnTile& t, const LrnNumbers& numbers,
                                 std::int64_t channel, const float* src) {
  const Window near = window(t, channel);
  auto sum = hn::Zero(d);
  for (std::int64_t j = near.first; j < near.last; ++j) {
    const auto x = access.load(d, src + j * t.spatial);
    sum = hn::MulAdd(x, x, sum);
  }
  return hn::MulAdd(hn::Set(d, numbers.weight), sum, hn::Set(d, numbers.k));
}

HWY_FLATTEN void tile_forward_kernel(const LrnTile& tile, const LrnNumbers& numbers,
                                     const float* src, float* dst) {
  const LrnTile t = tile;
  const F32 d;
  with_lrn_power(numbers, [&](auto power) {
    for (std::int64_t c = 0; c < t.channels; ++c) {
      for_each_vector(d, t.width, [&](std::int64_t i, auto access) {
        const auto powers = power(d, tile_scale(d, access, t, numbers, c, src + i));
        const std::int64_t at = c * t.spatial + i;
        hwy::Prefetch(src + at + kLrnTile);
        access.store(hn::Mul(access.load(d, src + at), powers.factor), d, dst + at);
      });
    }
  });
}

// The window's sum of channel c needs what the channels up to c + size/2 contribute, so the
// gradient follows so far behind; contributions wait in a ring of rows.
HWY_FLATTEN void tile_backward_kernel(const LrnTile& tile, const LrnNumbers& numbers,
                                      const float* src, const float* dst_grad, float* src_grad,
                                      float* scratch) {
  const LrnTile t = tile;
  const F32 d;
  const auto weight = hn::Set(d, numbers.gradient_weight());
  float* const direct = scratch + t.size * kLrnTile;
  with_lrn_power(numbers, [&](auto power) {
    for (std::int64_t c = 0; c < t.channels + t.size / 2; ++c) {
      if (c < t.channels) {
        const std::int64_t slot = c % t.size * kLrnTile;
        for_each_vector(d, t.width, [&](std::int64_t i, auto access) {
          const auto powers = power(d, tile_scale(d, access, t, numbers, c, src + i));
          const auto grad = access.load(d, dst_grad + c * t.spatial + i);
          const auto x = access.load(d, src + c * t.spatial + i);
          hwy::Prefetch(src + c * t.spatial + i + kLrnTile);
          hwy::Prefetch(dst_grad + c * t.spatial + i + kLrnTile);
          access.store(hn::Mul(hn::Mul(grad, x), powers.over_scale), d, scratch + slot + i);
          access.store(hn::Mul(grad, powers.factor), d, direct + slot + i);
        });
      }
      const std::int64_t o = c - t.size / 2;
      if (o < 0) continue;
      const Window near = window(t, o);
      const std::int64_t count = near.last - near.first, first = near.first % t.size;
      const float* const own_row = direct + o % t.size * kLrnTile;
      for_each_vector(d, t.width, [&](std::int64_t i, auto access) {
        auto sum = hn::Zero(d);
        for (std::int64_t j = 0, slot = first; j < count; ++j) {
          sum = hn::Add(sum, access.load(d, scratch + slot * kLrnTile + i));
          slot = slot + 1 < t.size ? slot + 1 : 0;
        }
        const auto x = access.load(d, src + o * t.spatial + i);
        const auto own = access.load(d, own_row + i);
        access.store(hn::NegMulAdd(hn::Mul(weight, x), sum, own), d, src_grad + o * t.spatial + i);
      });
    }
  });
}

// Calls body(vector type, offset in the array, offset in a scratch array, access) for the vectors
// of channels at each position. In scratch a position's channels follow one another across blocks,
// so that a window is a shift.
template <class Body>
HWY_INLINE void for_each_row_vector(const LrnRows& r, const Body& body) {
  with_row_tag(r.block, [&](auto d) {
    for (std::int64_t k = 0; k < r.blocks; ++k) {
      for (std::int64_t p = 0; p < r.positions; ++p) {
        const std::int64_t at = k * r.block_stride + p * r.block;
        const std::int64_t row = p * r.pitch() + r.size / 2 + k * r.block;
        for_each_vector(d, r.block,
                        [&](std::int64_t c, auto access) { body(d, at + c, row + c, access); });
      }
    }
  });
}

// What is no channel must add nothing to a window. Called after the rows are written: whole vectors
// are, and the last one of a row reaches into the margin.
HWY_INLINE void clear_margins(const LrnRows& r, float* rows) {
  const std::int64_t margin = r.size / 2;
  for (std::int64_t p = 0; p < r.positions; ++p) {
    float* row = rows + p * r.pitch();
    std::fill_n(row, margin, 0.0F);
    std::fill(row + margin + r.channels, row + 2 * margin + r.blocks * r.block, 0.0F);
  }
}

template <class D, class Half>
HWY_INLINE hn::Vec<D> sum_window(D d, Half half, const float* middle) {
  auto sum = hn::LoadU(d, middle);
  for (int j = 1; j <= half; ++j) {
    sum = hn::Add(sum, hn::Add(hn::LoadU(d, middle - j), hn::LoadU(d, middle + j)));
  }
  return sum;
}

// Calls body(size / 2), as a constant where windows are of the usual 5 channels.
template <class Body>
HWY_INLINE void with_half(std::int64_t size, const Body& body) {
  if (size == 5) {
    body(std::integral_constant<int, 2>());
  } else {
    body(static_cast<int>(size / 2));
  }
}

HWY_INLINE void store_squares(const LrnRows& r, const float* src, float* squares) {
  for_each_row_vector(r, [&](auto d, std::int64_t at, std::int64_t row, auto access) {
    const auto x = access.load(d, src + at);
    hwy::Prefetch(src + at + r.positions * r.block);  // for the next tile
    hn::StoreU(hn::Mul(x, x), d, squares + row);
  });
  clear_margins(r, squares);
}

// A scale that is zero makes padding infinite.
HWY_INLINE void clear_padding(const LrnRows& r, float* array) {
  const std::int64_t used = r.channels - (r.blocks - 1) * r.block;
  for (std::int64_t p = 0; used < r.block && p < r.positions; ++p) {
    float* row = array + (r.blocks - 1) * r.block_stride + p * r.block;
    std::fill(row + used, row + r.block, 0.0F);
  }
}

HWY_FLATTEN void rows_forward_kernel(const LrnRows& rows, const LrnNumbers& numbers,
                                     const float* src, float* dst, float* squares) {
  const LrnRows r = rows;
  store_squares(r, src, squares);
  with_lrn_power(numbers, [&](auto power) {
    with_half(r.size, [&](auto half) {
      for_each_row_vector(r, [&](auto d, std::int64_t at, std::int64_t row, auto access) {
        const auto sum = sum_window(d, half, squares + row);
        const auto scale = hn::MulAdd(hn::Set(d, numbers.weight), sum, hn::Set(d, numbers.k));
        const auto x = access.load(d, src + at);
        access.store(hn::Mul(x, power(d, scale).factor), d, dst + at);
      });
    });
  });
  clear_padding(r, dst);
}

HWY_FLATTEN void rows_backward_kernel(const LrnRows& rows, const LrnNumbers& numbers,
                                      const float* src, const float* dst_grad, float* src_grad,
                                      float* squares) {
  const LrnRows r = rows;
  float* const contributions = squares + r.positions * r.pitch();
  float* const direct = contributions + r.positions * r.pitch();
  store_squares(r, src, squares);
  with_lrn_power(numbers, [&](auto power) {
    with_half(r.size, [&](auto half) {
      for_each_row_vector(r, [&](auto d, std::int64_t at, std::int64_t row, auto access) {
        const auto sum = sum_window(d, half, squares + row);
        const auto scale = hn::MulAdd(hn::Set(d, numbers.weight), sum, hn::Set(d, numbers.k));
        const auto powers = power(d, scale);
        const auto grad = access.load(d, dst_grad + at);
        hwy::Prefetch(dst_grad + at + r.positions * r.block);
        const auto product = hn::Mul(grad, access.load(d, src + at));
        hn::StoreU(hn::Mul(product, powers.over_scale), d, contributions + row);
        hn::StoreU(hn::Mul(grad, powers.factor), d, direct + row);
      });
    });
  });
  clear_margins(r, contributions);
  with_half(r.size, [&](auto half) {
    for_each_row_vector(r, [&](auto d, std::int64_t at, std::int64_t row, auto access) {
      const auto sum = sum_window(d, half, contributions + row);
      const auto x = access.load(d, src + at);
      const auto weighted = hn::Mul(hn::Set(d, numbers.gradient_weight()), x);
      access.store(hn::NegMulAdd(weighted, sum, hn::LoadU(d, direct + row)), d, src_grad + at);
    });
  });
  clear_padding(r, src_grad);
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(tile_forward_kernel);
HWY_EXPORT(tile_backward_kernel);
HWY_EXPORT(rows_forward_kernel);
HWY_EXPORT(rows_backward_kernel);

}  // namespace

void lrn_tile_forward(const LrnTile& tile, const LrnNumbers& numbers, const float* src,
                      float* dst) {
  HWY_DYNAMIC_DISPATCH(tile_forward_kernel)(tile, numbers, src, dst);
}
void lrn_tile_backward(const LrnTile& tile, const LrnNumbers& numbers, const float* src,
                       const float* dst_grad, float* src_grad, float* scratch) {
  HWY_DYNAMIC_DISPATCH(tile_backward_kernel)(tile, numbers, src, dst_grad, src_grad, scratch);
}
void lrn_rows_forward(const LrnRows& rows, const LrnNumbers& numbers, const float* src, float* dst,
                      float* scratch) {
  HWY_DYNAMIC_DISPATCH(rows_forward_kernel)(rows, numbers, src, dst, scratch);
}
void lrn_rows_backward(const LrnRows& rows, const LrnNumbers& numbers, const float* src,
                       const float* dst_grad, float* src_grad, float* scratch) {
  HWY_DYNAMIC_DISPATCH(rows_backward_kernel)(rows, numbers, src, dst_grad, src_grad, scratch);
}

}  // namespace speedo::cpu
#endif
