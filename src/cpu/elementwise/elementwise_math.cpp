// Powers of the elements of an array.

#include "cpu/elementwise/elementwise.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/elementwise_math.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/vector_math.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

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

// Calls body(vector type, f) with f(v) = v^exponent.
template <class Body>
HWY_INLINE void with_power(float exponent, const Body& body) {
  constexpr float kWholeMax = 8.0F;
  const F32 d;
  if (exponent == 1.0F) {
    body(d, [](auto v) { return v; });
  } else if (exponent == 2.0F) {
    body(d, [](auto v) { return hn::Mul(v, v); });
  } else if (exponent == -0.75F) {
    body(d, [](auto v) {
      const auto root = hn::Sqrt(v);
      return one_over(hn::Mul(root, hn::Sqrt(root)));
    });
  } else if (exponent == 0.5F) {
    body(d, [](auto v) { return hn::Sqrt(v); });
  } else if (exponent == -0.5F) {
    body(d, [](auto v) { return one_over(hn::Sqrt(v)); });
  } else if (std::floor(exponent) == exponent && std::fabs(exponent) <= kWholeMax) {
    const int whole = static_cast<int>(std::fabs(exponent));
    if (exponent >= 0.0F) {
      body(d, [whole](auto v) { return whole_power(v, whole); });
    } else {
      body(d, [whole](auto v) { return one_over(whole_power(v, whole)); });
    }
  } else if (std::isfinite(exponent)) {
    const hn::Rebind<float, hn::ScalableTag<double>> half;
    body(half, [half, exponent](auto v) { return any_power(half, v, exponent); });
  } else {
    const hn::CappedTag<float, 1> one;
    body(one, [one, exponent](auto v) { return hn::Set(one, std::pow(hn::GetLane(v), exponent)); });
  }
}

// Calls body(vector type, f) with f(v) = (a v + b)^exponent. A sum with 0 would lose the sign of a
// zero.
template <class Body>
HWY_INLINE void with_power_of_sum(float a, float b, float exponent, const Body& body) {
  with_power(exponent, [&](auto d, auto f) {
    const auto scale = hn::Set(d, a), shift = hn::Set(d, b);
    if (a == 1.0F && b == 0.0F) {
      body(d, f);
    } else if (b == 0.0F) {
      body(d, [&](auto v) { return f(hn::Mul(scale, v)); });
    } else {
      body(d, [&](auto v) { return f(hn::MulAdd(scale, v, shift)); });
    }
  });
}

HWY_FLATTEN void power_kernel(const UnaryOp& op, std::int64_t n, const float* x, float* y) {
  with_power_of_sum(op.a, op.b, op.c, [&](auto d, const auto& f) {
    for_each_vector(d, n, [&](std::int64_t i, auto access) {
      access.store(f(access.load(d, x + i)), d, y + i);
    });
  });
}

HWY_FLATTEN void power_backward_kernel(const UnaryOp& op, std::int64_t n, const float* x,
                                       const float* y_grad, float* x_grad) {
  with_power_of_sum(op.a, op.b, op.c - 1.0F, [&](auto d, const auto& f) {
    const auto factor = hn::Set(d, op.a * op.c);
    for_each_vector(d, n, [&](std::int64_t i, auto access) {
      const auto slope = hn::Mul(factor, f(access.load(d, x + i)));
      access.store(hn::Mul(slope, access.load(d, y_grad + i)), d, x_grad + i);
    });
  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(power_kernel);
HWY_EXPORT(power_backward_kernel);

}  // namespace

void power(const UnaryOp& op, std::int64_t n, const float* x, float* y) {
  if (op.a * op.c == 0.0F) return fill(n, op.c == 0.0F ? 1.0F : std::pow(op.b, op.c), y);
  HWY_DYNAMIC_DISPATCH(power_kernel)(op, n, x, y);
}

void power_backward(const UnaryOp& op, std::int64_t n, const float* x, const float* y_grad,
                    float* x_grad) {
  if (op.a * op.c == 0.0F) return fill(n, 0.0F, x_grad);
  if (has_fixed_slope(op)) return power(affine(op.a), n, y_grad, x_grad);
  HWY_DYNAMIC_DISPATCH(power_backward_kernel)(op, n, x, y_grad, x_grad);
}

}  // namespace speedo::cpu
#endif
