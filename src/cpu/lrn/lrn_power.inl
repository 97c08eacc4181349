// The powers of response normalization. Compiled once per instruction set; see simd.hpp.
#if defined(SPEEDO_CPU_LRN_POWER_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SPEEDO_CPU_LRN_POWER_INL
#undef SPEEDO_CPU_LRN_POWER_INL
#else
#define SPEEDO_CPU_LRN_POWER_INL
#endif

#include <cfloat>

#include "cpu/lrn/lrn_kernels.hpp"
#include "cpu/support/vector_math.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {

// scale^-beta and scale^-(beta + 1).
template <class V>
struct LrnPowers {
  V factor, over_scale;
};

struct MinusThreeQuarters {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE LrnPowers<V> operator()(D d, V scale) const {
    const V half = one_over_root(d, scale);                    // scale^-1/2
    const V quarter = one_over_root(d, hn::Mul(scale, half));  // scale^-1/4
    const V factor = hn::Mul(half, quarter);
    return {factor, hn::Mul(factor, hn::Mul(half, half))};
  }
};

struct MinusHalf {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE LrnPowers<V> operator()(D d, V scale) const {
    const V factor = one_over_root(d, scale);
    return {factor, hn::Mul(factor, hn::Mul(factor, factor))};
  }
};

struct MinusOne {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE LrnPowers<V> operator()(D /*d*/, V scale) const {
    const V factor = one_over(scale);
    return {factor, hn::Mul(factor, factor)};
  }
};

struct MinusAny {
  float beta;

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE LrnPowers<V> operator()(D d, V scale) const {
    const V zero = hn::Zero(d);
    const V size = hn::Max(hn::Abs(scale), hn::Set(d, FLT_MIN));
    V factor = exponential(d, hn::Mul(hn::Set(d, -beta), hn::Log(d, size)));
    const V bad = hn::Set(d, std::nanf(""));
    const V edge = hn::Set(d, beta > 0.0F ? std::numeric_limits<float>::infinity() : 0.0F);
    factor = hn::IfThenElse(hn::Eq(scale, zero), edge, factor);
    factor = hn::IfThenElse(hn::Ge(scale, zero), factor, bad);
    return {factor, hn::Div(factor, scale)};
  }
};

// Calls body(what computes the powers).
template <class Body>
HWY_INLINE void with_lrn_power(const LrnNumbers& numbers, const Body& body) {
  // Estimates of roots need a scale that is certainly positive.
  const bool is_positive = numbers.k >= FLT_MIN && numbers.weight >= 0.0F;
  if (numbers.beta == 0.75F && is_positive) {
    body(MinusThreeQuarters());
  } else if (numbers.beta == 0.5F && is_positive) {
    body(MinusHalf());
  } else if (numbers.beta == 1.0F) {
    body(MinusOne());
  } else {
    body(MinusAny{numbers.beta});
  }
}

}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
