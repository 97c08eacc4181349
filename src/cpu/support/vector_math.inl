// Elementary functions of vectors. Compiled once per instruction set; see simd.hpp.
#if defined(SPEEDO_CPU_VECTOR_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SPEEDO_CPU_VECTOR_MATH_INL
#undef SPEEDO_CPU_VECTOR_MATH_INL
#else
#define SPEEDO_CPU_VECTOR_MATH_INL
#endif

#include <cmath>
#include <limits>

#include <hwy/contrib/math/math-inl.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {

template <class V>
HWY_INLINE V one_over(V x) {
  return hn::Div(hn::Set(hn::DFromV<V>(), 1.0F), x);
}

// e^x to about 1 unit in the last place. Below -87.3 it is 0 (the true value is below FLT_MIN),
// above 88.7 infinity; NaN stays NaN.
// Method: x = n ln2 + r with |r| <= ln2/2; e^r by its series to r^7; 2^n by the exponent bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exponential(D d, V x) {
  const hn::Rebind<std::int32_t, D> di;
  const V low = hn::Set(d, -87.3F);
  const V high = hn::Set(d, 88.7F);
  const V round = hn::Set(d, 12582912.0F);  // 1.5 * 2^23: the last bits of a sum with it are whole
  const V bounded = hn::Min(hn::Max(x, low), high);
  const V rounded = hn::MulAdd(bounded, hn::Set(d, 1.44269504F), round);
  const V n = hn::Sub(rounded, round);
  // ln2 in two parts; the first has few bits, so that n times it is exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), bounded);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  V p = hn::Set(d, 1.9841270e-4F);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3888889e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3333333e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1666667e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666667e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5F));
  p = hn::Add(hn::MulAdd(hn::Mul(p, r), r, r), hn::Set(d, 1.0F));
  // Between the bounds the product is a normal number: n goes to the exponent as it is, and in
  // `rounded` it lies lowest, below what is shifted away.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, rounded));
  p = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  p = hn::IfThenElse(hn::Gt(x, high), hn::Set(d, std::numeric_limits<float>::infinity()), p);
  p = hn::IfThenZeroElse(hn::Lt(x, low), p);
  return hn::IfThenElse(hn::Eq(x, x), p, x);
}

// The natural logarithm to a few units in the last place, with std::log's zeros, infinities and NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logarithm(D d, V x) {
  const V zero = hn::Zero(d);
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  V y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  y = hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::nanf("")), y);
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// log(1 + e^-|x|) to a few units in the last place; NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_of_one_and_exponential(D d, V x) {
  const V tail = hn::Log1p(d, exponential(d, hn::Neg(hn::Abs(x))));
  return hn::IfThenElse(hn::Eq(x, x), tail, x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  return one_over(hn::Add(hn::Set(d, 1.0F), exponential(d, hn::Neg(x))));
}

// Near zero an odd polynomial (Cephes' tanhf), so that small values keep their digits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V hyperbolic_tangent(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V size = hn::Abs(x);
  const V square = hn::Mul(x, x);
  V p = hn::Set(d, -5.70498872745e-3F);
  p = hn::MulAdd(p, square, hn::Set(d, 2.06390887954e-2F));
  p = hn::MulAdd(p, square, hn::Set(d, -5.37397155531e-2F));
  p = hn::MulAdd(p, square, hn::Set(d, 1.33314422036e-1F));
  p = hn::MulAdd(p, square, hn::Set(d, -3.33332819422e-1F));
  const V near_zero = hn::MulAdd(hn::Mul(p, square), x, x);
  const V twice = exponential(d, hn::Add(size, size));
  const V far = hn::Sub(one, hn::Div(hn::Set(d, 2.0F), hn::Add(twice, one)));
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.625F)), near_zero, hn::CopySign(far, x));
}

// 1 / sqrt(x) to some 22 bits or more. Requires: x normal and positive.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V one_over_root(D d, V x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  // The processor's estimate of 12 bits or more, and one step of Newton's method. Each maker's
  // processors have estimates of their own, so lesser targets, which pinned kernels are, divide.
  const V estimate = hn::ApproximateReciprocalSqrt(x);
  const V product = hn::Mul(hn::Mul(x, hn::Set(d, 0.5F)), estimate);
  return hn::Mul(estimate, hn::NegMulAdd(product, estimate, hn::Set(d, 1.5F)));
#else
  return hn::Div(hn::Set(d, 1.0F), hn::Sqrt(x));
#endif
}

// What std::pow(x, exponent) gives, for a finite exponent, by logarithms of doubles. `half`: as
// many floats as a vector of doubles has lanes.
template <class DHalf, class V = hn::Vec<DHalf>>
HWY_INLINE V any_power(DHalf half, V x, float exponent) {
  const hn::Rebind<double, DHalf> d;
  const auto p = hn::Set(d, static_cast<double>(exponent));
  // Zero and infinity are put right below; subnormal floats are normal doubles.
  const auto size =
      hn::PromoteTo(d, hn::Min(hn::Abs(x), hn::Set(half, std::numeric_limits<float>::max())));
  const auto product = hn::Mul(p, hn::Log(d, hn::Max(size, hn::Set(d, 1e-300))));
  const auto bounded = hn::Min(hn::Max(product, hn::Set(d, -700.0)), hn::Set(d, 700.0));
  V result = hn::DemoteTo(half, hn::Exp(d, bounded));
  const V infinity = hn::Set(half, std::numeric_limits<float>::infinity());
  const V zero = hn::Zero(half);
  result = hn::IfThenElse(hn::Eq(x, zero), exponent > 0.0F ? zero : infinity, result);
  result = hn::IfThenElse(hn::Eq(hn::Abs(x), infinity), exponent > 0.0F ? infinity : zero, result);
  const bool is_whole = std::floor(exponent) == exponent;
  const bool is_odd = is_whole && std::fmod(exponent, 2.0F) != 0.0F;
  const V negative = is_odd ? hn::Neg(result) : (is_whole ? result : hn::Set(half, std::nanf("")));
  result = hn::IfThenElse(hn::Lt(x, zero), negative, result);
  return hn::IfThenElse(hn::Eq(x, x), result, x);
}

}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
