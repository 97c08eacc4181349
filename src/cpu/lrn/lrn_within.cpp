// A window's sum is one over columns of squares, then one over their neighbours in a row; both are
// computed afresh for each position, as across channels.

#include "cpu/lrn/lrn_kernels.hpp"

#include <algorithm>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/lrn/lrn_within.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/lrn/lrn_power.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

struct Rows {
  std::int64_t first, last;
};
HWY_INLINE Rows near_rows(const LrnPlane& p, std::int64_t y) {
  return {std::max<std::int64_t>(0, y - p.rows / 2), std::min(p.h, y + p.rows / 2 + 1)};
}

// Margins of a wide row hold zeros. They are written after the row, whose last vector reaches into
// one of them.
HWY_INLINE void clear_margins(const LrnPlane& p, float* columns) {
  const std::int64_t margin = p.columns / 2 * p.block;
  std::fill_n(columns, margin, 0.0F);
  std::fill_n(columns + margin + p.row(), margin, 0.0F);
}

// `columns`: a wide row's sums of columns, from its margin on.
template <class D>
HWY_INLINE hn::Vec<D> sum_neighbours(D d, const LrnPlane& p, const float* columns) {
  auto sum = hn::LoadU(d, columns);
  for (std::int64_t j = 1; j < p.columns; ++j) {
    sum = hn::Add(sum, hn::LoadU(d, columns + j * p.block));
  }
  return sum;
}

HWY_INLINE void sum_squares(const LrnPlane& p, std::int64_t y, const float* src, float* columns) {
  const F32 d;
  const Rows near = near_rows(p, y);
  float* const middle = columns + p.columns / 2 * p.block;
  for_each_vector(d, p.row(), [&](std::int64_t i, auto access) {
    auto sum = hn::Zero(d);
    for (std::int64_t row = near.first; row < near.last; ++row) {
      const auto x = access.load(d, src + row * p.row() + i);
      sum = hn::MulAdd(x, x, sum);
    }
    hn::StoreU(sum, d, middle + i);
  });
  clear_margins(p, columns);
}

HWY_FLATTEN void plane_forward_kernel(const LrnPlane& plane, const LrnNumbers& numbers,
                                      const float* src, float* dst, float* columns) {
  const F32 d;
  const LrnPlane p = plane;
  with_lrn_power(numbers, [&](auto power) {
    for (std::int64_t y = 0; y < p.h; ++y) {
      sum_squares(p, y, src, columns);
      for_each_vector(d, p.row(), [&](std::int64_t i, auto access) {
        const auto sum = sum_neighbours(d, p, columns + i);
        const auto scale = hn::MulAdd(hn::Set(d, numbers.weight), sum, hn::Set(d, numbers.k));
        const auto x = access.load(d, src + y * p.row() + i);
        access.store(hn::Mul(x, power(d, scale).factor), d, dst + y * p.row() + i);
      });
    }
  });
}

// The gradient follows the rows' contributions half a window behind; they wait in a ring of rows.
HWY_FLATTEN void plane_backward_kernel(const LrnPlane& plane, const LrnNumbers& numbers,
                                       const float* src, const float* dst_grad, float* src_grad,
                                       float* columns) {
  const F32 d;
  const LrnPlane p = plane;
  const auto weight = hn::Set(d, numbers.gradient_weight());
  float* const contributions = columns + p.wide_row();
  float* const direct = contributions + p.rows * p.row();
  with_lrn_power(numbers, [&](auto power) {
    for (std::int64_t y = 0; y < p.h + p.rows / 2; ++y) {
      if (y < p.h) {
        const std::int64_t slot = y % p.rows * p.row();
        sum_squares(p, y, src, columns);
        for_each_vector(d, p.row(), [&](std::int64_t i, auto access) {
          const auto sum = sum_neighbours(d, p, columns + i);
          const auto scale = hn::MulAdd(hn::Set(d, numbers.weight), sum, hn::Set(d, numbers.k));
          const auto powers = power(d, scale);
          const auto grad = access.load(d, dst_grad + y * p.row() + i);
          const auto product = hn::Mul(grad, access.load(d, src + y * p.row() + i));
          access.store(hn::Mul(product, powers.over_scale), d, contributions + slot + i);
          access.store(hn::Mul(grad, powers.factor), d, direct + slot + i);
        });
      }
      const std::int64_t o = y - p.rows / 2;
      if (o < 0) continue;
      const Rows near = near_rows(p, o);
      const std::int64_t count = near.last - near.first, first = near.first % p.rows;
      for_each_vector(d, p.row(), [&](std::int64_t i, auto access) {
        auto sum = hn::Zero(d);
        for (std::int64_t j = 0, slot = first; j < count; ++j) {
          sum = hn::Add(sum, access.load(d, contributions + slot * p.row() + i));
          slot = slot + 1 < p.rows ? slot + 1 : 0;
        }
        hn::StoreU(sum, d, columns + p.columns / 2 * p.block + i);
      });
      clear_margins(p, columns);
      const float* const own_row = direct + o % p.rows * p.row();
      for_each_vector(d, p.row(), [&](std::int64_t i, auto access) {
        const auto sum = sum_neighbours(d, p, columns + i);
        const auto x = access.load(d, src + o * p.row() + i);
        const auto own = access.load(d, own_row + i);
        access.store(hn::NegMulAdd(hn::Mul(weight, x), sum, own), d, src_grad + o * p.row() + i);
      });
    }
  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(plane_forward_kernel);
HWY_EXPORT(plane_backward_kernel);

}  // namespace

void lrn_plane_forward(const LrnPlane& plane, const LrnNumbers& numbers, const float* src,
                       float* dst, float* scratch) {
  HWY_DYNAMIC_DISPATCH(plane_forward_kernel)(plane, numbers, src, dst, scratch);
}
void lrn_plane_backward(const LrnPlane& plane, const LrnNumbers& numbers, const float* src,
                        const float* dst_grad, float* src_grad, float* scratch) {
  HWY_DYNAMIC_DISPATCH(plane_backward_kernel)(plane, numbers, src, dst_grad, src_grad, scratch);
}

}  // namespace speedo::cpu
#endif
