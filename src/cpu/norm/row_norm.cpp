#include "cpu/norm/row_norm.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/norm/row_norm.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// Two sums over a row, in doubles, of body(vector type, first element, access), which returns what
// is added to the first and to the second.
struct RowTerms {
  hn::Vec<hn::ScalableTag<double>> first, second;
};
struct Sums {
  double first, second;
};
template <class Body>
HWY_INLINE Sums sum_row(std::int64_t n, const Body& body) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  auto a = hn::Zero(d), b = hn::Zero(d);
  for_each_vector(half, n, [&](std::int64_t i, auto access) {
    const auto terms = body(d, half, i, access);
    a = hn::Add(a, terms.first);
    b = hn::Add(b, terms.second);
  });
  return {hn::GetLane(hn::SumOfLanes(d, a)), hn::GetLane(hn::SumOfLanes(d, b))};
}

// The mean of a row, and the sum of the squares of what differs from it.
HWY_INLINE Sums row_moments(std::int64_t n, const float* x) {
  const auto count = static_cast<double>(n);
  const Sums sums = sum_row(n, [&](auto d, auto half, std::int64_t i, auto access) {
    return RowTerms{hn::PromoteTo(d, access.load(half, x + i)), hn::Zero(d)};
  });
  const double mean = sums.first / count;
  const auto middle = static_cast<float>(mean);
  const Sums squares = sum_row(n, [&](auto d, auto half, std::int64_t i, auto access) {
    const auto value = access.load_or(half, x + i, hn::Set(half, middle));
    const auto difference = hn::Sub(hn::PromoteTo(d, value), hn::Set(d, mean));
    return RowTerms{hn::Mul(difference, difference), hn::Zero(d)};
  });
  return {mean, squares.first};
}

// `epsilon` below 0: the variance stays.
HWY_FLATTEN void normalize_kernel(std::int64_t n, float epsilon, const float* x, float* y,
                                  float* deviation) {
  const Sums moments = row_moments(n, x);
  const double root = std::sqrt(moments.second / static_cast<double>(n));
  const float divisor = epsilon < 0.0F ? 1.0F : static_cast<float>(root) + epsilon;
  *deviation = divisor;
  // In two parts, as what is left may be much smaller than the mean.
  const auto high = static_cast<float>(moments.first);
  const auto low = static_cast<float>(moments.first - static_cast<double>(high));
  const F32 d;
  const auto mean = hn::Set(d, high), rest = hn::Set(d, low), spread = hn::Set(d, divisor);
  map(n, x, y, [&](auto v) { return hn::Div(hn::Sub(hn::Sub(v, mean), rest), spread); });
}

HWY_FLATTEN void row_backward_kernel(std::int64_t n, bool divides, const RowGradient& all) {
  const RowGradient row = all;
  const Sums sums = sum_row(n, [&](auto d, auto half, std::int64_t i, auto access) {
    const auto grad = hn::PromoteTo(d, access.load(half, row.y_grad + i));
    if (!divides) return RowTerms{grad, hn::Zero(d)};
    return RowTerms{grad, hn::Mul(grad, hn::PromoteTo(d, access.load(half, row.y + i)))};
  });
  const F32 d;
  const auto count = static_cast<double>(n);
  const auto mean = hn::Set(d, static_cast<float>(sums.first / count));
  if (!divides) return map(n, row.y_grad, row.x_grad, [&](auto v) { return hn::Sub(v, mean); });
  const auto product = hn::Set(d, static_cast<float>(sums.second / count));
  const auto spread = hn::Set(d, *row.deviation);
  map(n, row.y_grad, row.y, row.x_grad, [&](auto grad, auto y) {
    return hn::Div(hn::NegMulAdd(y, product, hn::Sub(grad, mean)), spread);
  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(normalize_kernel);
HWY_EXPORT(row_backward_kernel);

std::int64_t row_grain(const Backend::RowsShape& shape) {
  constexpr std::int64_t kRowGrain = 8192;
  return std::max<std::int64_t>(1, kRowGrain / std::max<std::int64_t>(1, shape.columns));
}

}  // namespace

void normalize_rows(ThreadPool& pool, const Backend::RowNorm& norm, const float* x, float* y,
                    float* deviation) {
  const std::int64_t n = norm.shape.columns;
  pool.split(norm.shape.rows, row_grain(norm.shape), [&](std::int64_t r, std::int64_t last, int) {
    for (; r < last; ++r) {
      HWY_DYNAMIC_DISPATCH(normalize_kernel)
      (n, norm.epsilon.value_or(-1.0F), x + r * n, y + r * n, deviation + r);
    }
  });
}

void normalize_rows_backward(ThreadPool& pool, const Backend::RowNorm& norm,
                             const RowGradient& gradient) {
  const std::int64_t n = norm.shape.columns;
  pool.split(norm.shape.rows, row_grain(norm.shape), [&](std::int64_t r, std::int64_t last, int) {
    for (; r < last; ++r) {
      HWY_DYNAMIC_DISPATCH(row_backward_kernel)
      (n, norm.epsilon.has_value(),
       {gradient.y + r * n, gradient.deviation + r, gradient.y_grad + r * n,
        gradient.x_grad + r * n});
    }
  });
}

}  // namespace speedo::cpu
#endif
