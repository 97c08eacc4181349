// Sums over arrays, and over the rows of a matrix.

#include "cpu/elementwise/elementwise.hpp"

#include "cpu/support/simd.hpp"
#include "cpu/support/sum_parts.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/elementwise_sums.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// Sums run in several vectors at once: one addition waits for the one before.
HWY_FLATTEN float sum_kernel(std::int64_t n, const float* x) {
  const F32 d;
  const std::int64_t step = lanes(d);
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    a = hn::Add(a, hn::LoadU(d, x + i));
    b = hn::Add(b, hn::LoadU(d, x + i + step));
    c = hn::Add(c, hn::LoadU(d, x + i + 2 * step));
    e = hn::Add(e, hn::LoadU(d, x + i + 3 * step));
  }
  for_each_vector(d, n - i,
                  [&](std::int64_t k, auto access) { a = hn::Add(a, access.load(d, x + i + k)); });
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// 0, or NaN if an element times 0 is not 0.
HWY_FLATTEN double finite_kernel(std::int64_t n, const float* x) {
  const F32 d;
  const auto zero = hn::Zero(d);
  const std::int64_t step = lanes(d);
  auto a = zero, b = zero;
  std::int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    a = hn::MulAdd(zero, hn::LoadU(d, x + i), a);
    b = hn::MulAdd(zero, hn::LoadU(d, x + i + step), b);
  }
  for_each_vector(d, n - i, [&](std::int64_t k, auto access) {
    a = hn::MulAdd(zero, access.load(d, x + i + k), a);
  });
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b))));
}

// The sum of f(x, y) over two arrays, in doubles.
template <class F>
HWY_INLINE double sum_doubles(std::int64_t n, const float* x, const float* y, const F& f) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const std::int64_t step = lanes(d);
  auto a = hn::Zero(d), b = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    a = hn::Add(a, f(d, hn::LoadU(half, x + i), hn::LoadU(half, y + i)));
    b = hn::Add(b, f(d, hn::LoadU(half, x + i + step), hn::LoadU(half, y + i + step)));
  }
  for_each_vector(half, n - i, [&](std::int64_t k, auto access) {
    a = hn::Add(a, f(d, access.load(half, x + i + k), access.load(half, y + i + k)));
  });
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}

HWY_FLATTEN double dot_kernel(std::int64_t n, const float* x, const float* y) {
  return sum_doubles(n, x, y, [](auto d, auto u, auto v) {
    return hn::Mul(hn::PromoteTo(d, u), hn::PromoteTo(d, v));
  });
}

HWY_FLATTEN double sum_abs_kernel(std::int64_t n, const float* x) {
  return sum_doubles(n, x, x, [](auto d, auto u, auto) { return hn::Abs(hn::PromoteTo(d, u)); });
}

HWY_FLATTEN double sum_wide_kernel(std::int64_t n, const float* x) {
  return sum_doubles(n, x, x, [](auto d, auto u, auto) { return hn::PromoteTo(d, u); });
}

HWY_FLATTEN double sum_squares_kernel(std::int64_t n, const float* x) {
  return sum_doubles(n, x, x, [](auto d, auto u, auto) {
    const auto wide = hn::PromoteTo(d, u);
    return hn::Mul(wide, wide);
  });
}

// Some vectors' columns of a matrix: sum[c] += column c of `rows` rows.
template <int vectors, class Access>
HWY_INLINE void sum_some_columns(Access access, std::int64_t rows, std::int64_t stride,
                                 const float* x, float* sum) {
  const F32 d;
  hn::Vec<F32> even[vectors], odd[vectors];
  for (int j = 0; j < vectors; ++j) even[j] = odd[j] = hn::Zero(d);
  std::int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    const float* const row = x + r * stride;
    for (int j = 0; j < vectors; ++j) {
      even[j] = hn::Add(even[j], access.load(d, row + j * lanes(d)));
      odd[j] = hn::Add(odd[j], access.load(d, row + stride + j * lanes(d)));
    }
  }
  for (int j = 0; j < vectors; ++j) {
    if (r < rows) even[j] = hn::Add(even[j], access.load(d, x + r * stride + j * lanes(d)));
    float* const to = sum + j * lanes(d);
    access.store(hn::Add(access.load(d, to), hn::Add(even[j], odd[j])), d, to);
  }
}

// Whole cache lines at once: the lines of a column often share few places of the cache.
HWY_FLATTEN void sum_columns_kernel(std::int64_t rows, std::int64_t stride, std::int64_t columns,
                                    const float* x, float* sum) {
  constexpr int kVectors = 4;
  const std::int64_t step = kVectors * lanes(F32());
  std::int64_t c = 0;
  for (; c + step <= columns; c += step) {
    sum_some_columns<kVectors>(Whole(), rows, stride, x + c, sum + c);
  }
  for_each_vector(F32(), columns - c, [&](std::int64_t i, auto access) HWY_ATTR {
    sum_some_columns<1>(access, rows, stride, x + c + i, sum + c + i);
  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(sum_kernel);
HWY_EXPORT(finite_kernel);
HWY_EXPORT(dot_kernel);
HWY_EXPORT(sum_abs_kernel);
HWY_EXPORT(sum_wide_kernel);
HWY_EXPORT(sum_squares_kernel);
HWY_EXPORT(sum_columns_kernel);

// Elements of a part of a sum, and of a row that is summed in parts.
constexpr std::int64_t kPartMin = 16384;
constexpr std::int64_t kLongRow = 4 * kPartMin;
// Matrix elements and columns that make it worth waking another thread.
constexpr std::int64_t kGrain = 16384;
constexpr std::int64_t kColumnGrain = 64;

using SumKernel = double (*)(std::int64_t, const float*);

// Of an operation on one array that adds up.
SumKernel sum_kernel_of(ReduceOp op) {
  if (op == ReduceOp::kAbsSum) return HWY_DYNAMIC_DISPATCH(sum_abs_kernel);
  if (op == ReduceOp::kSquareSum) return HWY_DYNAMIC_DISPATCH(sum_squares_kernel);
  if (op == ReduceOp::kAllFinite) return HWY_DYNAMIC_DISPATCH(finite_kernel);
  return HWY_DYNAMIC_DISPATCH(sum_wide_kernel);
}

}  // namespace

float sum(std::int64_t n, const float* x) { return HWY_DYNAMIC_DISPATCH(sum_kernel)(n, x); }

double reduce(ThreadPool& pool, ReduceOp op, std::int64_t n, const float* x, const float* y) {
  if (op == ReduceOp::kDot) {
    return sum_parts<double>(pool, n, kPartMin, [&](std::int64_t at, std::int64_t count) {
      return HWY_DYNAMIC_DISPATCH(dot_kernel)(count, x + at, y + at);
    });
  }
  const SumKernel kernel = sum_kernel_of(op);
  const auto sum = sum_parts<double>(pool, n, kPartMin, [&](std::int64_t at, std::int64_t count) {
    return kernel(count, x + at);
  });
  if (op == ReduceOp::kAllFinite) return sum == 0.0 ? 1.0 : 0.0;
  return sum;
}

void reduce_rows(ThreadPool& pool, ReduceOp op, const Backend::RowsShape& shape, float scale,
                 const float* x, float* y) {
  const std::int64_t columns = shape.columns;
  const auto scaled = [scale](double sum) {
    return static_cast<float>(static_cast<double>(scale) * sum);
  };
  if (columns >= kLongRow) {
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      y[r] = scaled(reduce(pool, op, columns, x + r * columns, nullptr));
    }
    return;
  }
  const SumKernel kernel = sum_kernel_of(op);
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
  pool.split(shape.rows, grain, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t r = first; r < last; ++r) y[r] = scaled(kernel(columns, x + r * columns));
  });
}

void sum_rows(ThreadPool& pool, std::int64_t rows, std::int64_t columns, const float* x,
              float* sum) {
  const std::int64_t grain = std::max(kColumnGrain, kGrain / std::max<std::int64_t>(1, rows));
  pool.split(columns, grain, [&](std::int64_t first, std::int64_t last, int) {
    HWY_DYNAMIC_DISPATCH(sum_columns_kernel)(rows, columns, last - first, x + first, sum + first);
  });
}

}  // namespace speedo::cpu
#endif
