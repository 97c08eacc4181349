// Powers of the elements of an array.

#include "cpu/elementwise.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/simd.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise_math.cpp"
#include <hwy/foreach_target.h>

#include "cpu/vector_math.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

template <class F>
HWY_INLINE void map(std::int64_t n, const float* x, float* y, const F& f) {
  const F32 d;
  for_each_vector(d, n, [&](std::int64_t i, auto access) {
    access.store(f(d, access.load(d, x + i)), d, y + i);
  });
}

// By squaring: x^(2k) = (x^2)^k.
template <class V>
HWY_INLINE V whole_power(V x, int exponent) {
  V result = hn::Set(hn::DFromV<V>(), 1.0F);
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = hn::Mul(result, x);
    x = hn::Mul(x, x);
  }
  return result;
}

HWY_FLATTEN void any_power_kernel(std::int64_t n, const float* x, float exponent, float* y) {
  const hn::Rebind<float, hn::ScalableTag<double>> half;
  for_each_vector(half, n, [&](std::int64_t i, auto access) {
    access.store(any_power(half, access.load(half, x + i), exponent), half, y + i);
  });
}

HWY_FLATTEN void power_kernel(std::int64_t n, const float* x, float exponent, float* y) {
  constexpr float kWholeMax = 8.0F;
  if (exponent == -0.75F) {
    map(n, x, y, [](auto, auto v) {
      const auto root = hn::Sqrt(v);
      return one_over(hn::Mul(root, hn::Sqrt(root)));
    });
  } else if (exponent == 0.5F) {
    map(n, x, y, [](auto, auto v) { return hn::Sqrt(v); });
  } else if (exponent == -0.5F) {
    map(n, x, y, [](auto, auto v) { return one_over(hn::Sqrt(v)); });
  } else if (std::floor(exponent) == exponent && std::fabs(exponent) <= kWholeMax) {
    const int whole = static_cast<int>(std::fabs(exponent));
    if (exponent >= 0.0F) {
      map(n, x, y, [&](auto, auto v) { return whole_power(v, whole); });
    } else {
      map(n, x, y, [&](auto, auto v) { return one_over(whole_power(v, whole)); });
    }
  } else if (std::isfinite(exponent)) {
    any_power_kernel(n, x, exponent, y);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = std::pow(x[i], exponent);
  }
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(power_kernel);

}  // namespace

void power(std::int64_t n, const float* x, float exponent, float* y) {
  HWY_DYNAMIC_DISPATCH(power_kernel)(n, x, exponent, y);
}

}  // namespace speedo::cpu
#endif
