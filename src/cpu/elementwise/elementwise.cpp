#include "cpu/elementwise/elementwise.hpp"

#include <algorithm>
#include <bit>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/elementwise.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// The result must not depend on what y held when b is 0: fresh memory may hold a NaN.
HWY_INLINE void sum_arrays(std::int64_t n, float alpha, float beta, const ZipArrays& z) {
  const auto a = hn::Set(F32(), alpha);
  if (beta == 0.0F) {
    map(n, z.x, z.z, [&](auto u) { return hn::Mul(a, u); });
  } else if (beta == 1.0F) {
    map(n, z.x, z.y, z.z, [&](auto u, auto v) { return hn::MulAdd(a, u, v); });
  } else {
    const auto b = hn::Set(F32(), beta);
    map(n, z.x, z.y, z.z, [&](auto u, auto v) { return hn::MulAdd(a, u, hn::Mul(b, v)); });
  }
}

HWY_INLINE void maximum(std::int64_t n, float x_index, float y_index, const ZipArrays& z) {
  const F32 d;
  const auto a = hn::Set(d, x_index), b = hn::Set(d, y_index);
  const bool keeps = y_index < 0.0F;
  float* winners = z.winners;
  if (winners == nullptr) {
    return map(n, z.x, z.y, z.z, [](auto u, auto v) { return hn::IfThenElse(hn::Gt(u, v), u, v); });
  }
  for_each_vector(d, n, [&](std::int64_t i, auto access) {
    const auto u = access.load(d, z.x + i), v = access.load(d, z.y + i);
    const auto is_x = hn::Gt(u, v);
    const auto other = keeps ? access.load(d, winners + i) : b;
    access.store(hn::IfThenElse(is_x, a, other), d, winners + i);
    access.store(hn::IfThenElse(is_x, u, v), d, z.z + i);
  });
}

HWY_FLATTEN void zip_kernel(const BinaryOp& op, std::int64_t n, const ZipArrays& arrays) {
  const ZipArrays z = arrays;
  switch (op.kind) {
    case BinaryKind::kSum:
      return sum_arrays(n, op.a, op.b, z);
    case BinaryKind::kProduct:
      return map(n, z.x, z.y, z.z, [](auto u, auto v) { return hn::Mul(u, v); });
    case BinaryKind::kQuotient:
      return map(n, z.x, z.y, z.z, [](auto u, auto v) { return hn::Div(u, v); });
    case BinaryKind::kMaximum:
      return maximum(n, op.a, op.b, z);
    case BinaryKind::kChosen: {
      const auto wanted = hn::Set(F32(), op.a);
      return map(n, z.x, z.y, z.z,
                 [&](auto u, auto v) { return hn::IfThenElseZero(hn::Eq(u, wanted), v); });
    }
  }
}

HWY_FLATTEN void fill_kernel(std::int64_t n, float value, float* y) {
  const F32 d;
  const auto v = hn::Set(d, value);
  for_each_vector(d, n, [&](std::int64_t i, auto access) { access.store(v, d, y + i); });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(zip_kernel);
HWY_EXPORT(fill_kernel);

// Results that are still in the first-level cache when the activation takes them.
constexpr std::int64_t kChunk = 2048;

}  // namespace

ZipArrays advanced(const ZipArrays& arrays, std::int64_t by) {
  return {arrays.x + by, arrays.y == nullptr ? nullptr : arrays.y + by, arrays.z + by,
          arrays.winners == nullptr ? nullptr : arrays.winners + by};
}

void zip(const BinaryOp& op, std::int64_t n, const ZipArrays& arrays) {
  const std::int64_t step = op.activation ? kChunk : std::max<std::int64_t>(n, 1);
  for (std::int64_t i = 0; i < n; i += step) {
    const std::int64_t count = std::min(step, n - i);
    const ZipArrays chunk = advanced(arrays, i);
    HWY_DYNAMIC_DISPATCH(zip_kernel)(op, count, chunk);
    if (op.activation) map(*op.activation, count, chunk.z, chunk.z);
  }
}
void fill(std::int64_t n, float value, float* y) { HWY_DYNAMIC_DISPATCH(fill_kernel)(n, value, y); }

}  // namespace speedo::cpu
#endif
