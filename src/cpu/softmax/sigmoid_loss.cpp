// The cross-entropy of sigmoids. A term is log(1 + e^-|x|) - x (t - 1) where x >= 0, and
// log(1 + e^-|x|) - x t elsewhere: neither overflows, and neither is a difference of large numbers
// where it is small.

#include "cpu/softmax/losses.hpp"

#include <algorithm>

#include "cpu/support/simd.hpp"
#include "cpu/support/sum_parts.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/softmax/sigmoid_loss.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/vector_math.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// Elements whose terms are added as floats.
constexpr std::int64_t kTermChunk = 256;

// All true without a label to ignore.
template <class D>
HWY_INLINE hn::Mask<D> counts(D d, hn::Vec<D> target, std::optional<int> ignored) {
  if (!ignored) return hn::Eq(hn::Zero(d), hn::Zero(d));
  return hn::Ne(hn::Trunc(target), hn::Set(d, static_cast<float>(*ignored)));
}

HWY_FLATTEN void terms_kernel(std::int64_t n, const SigmoidTargets& all, double* sum,
                              std::int64_t* valid) {
  const SigmoidTargets from = all;
  const F32 d;
  const auto one = hn::Set(d, 1.0F), zero = hn::Zero(d);
  double total = 0.0;
  std::int64_t count = 0;
  for (std::int64_t begin = 0; begin < n; begin += kTermChunk) {
    auto terms = zero;
    const std::int64_t length = std::min(kTermChunk, n - begin);
    for_each_vector(d, length, [&](std::int64_t i, auto access) {
      // Lanes beyond the end add nothing: at a high score the loss against 1 is 0.
      const auto high = hn::Set(d, 200.0F);
      const auto x = access.load_or(d, from.x + begin + i, high);
      const auto t = access.load_or(d, from.target + begin + i, one);
      const auto wanted = hn::Sub(t, hn::IfThenElseZero(hn::Ge(x, zero), one));
      const auto term = hn::NegMulAdd(x, wanted, log_of_one_and_exponential(d, x));
      terms = hn::Add(terms, hn::IfThenElseZero(counts(d, t, from.ignored), term));
    });
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, terms)));
    if (!from.ignored) continue;
    const auto label = hn::Set(d, static_cast<float>(*from.ignored));
    for_each_vector(d, length, [&](std::int64_t i, auto access) {
      const auto t = access.load_or(d, from.target + begin + i, label);
      count += static_cast<std::int64_t>(hn::CountTrue(d, counts(d, t, from.ignored)));
    });
  }
  *sum = total;
  *valid = from.ignored ? count : n;
}

HWY_FLATTEN void sigmoid_slopes_kernel(std::int64_t n, const SigmoidTargets& all, float scale,
                                       float* grad) {
  const SigmoidTargets from = all;
  const F32 d;
  const auto factor = hn::Set(d, scale);
  for_each_vector(d, n, [&](std::int64_t i, auto access) {
    const auto t = access.load(d, from.target + i);
    const auto slope = hn::Mul(factor, hn::Sub(sigmoid(d, access.load(d, from.x + i)), t));
    access.store(hn::IfThenElseZero(counts(d, t, from.ignored), slope), d, grad + i);
  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(terms_kernel);
HWY_EXPORT(sigmoid_slopes_kernel);

constexpr std::int64_t kLossPartMin = 8192;

struct PartLoss {
  double sum = 0.0;
  std::int64_t valid = 0;
  PartLoss& operator+=(const PartLoss& other) {
    sum += other.sum;
    valid += other.valid;
    return *this;
  }
};

}  // namespace

Backend::SigmoidLoss sigmoid_loss(ThreadPool& pool, std::int64_t n, const SigmoidTargets& from) {
  const auto total =
      sum_parts<PartLoss>(pool, n, kLossPartMin, [&](std::int64_t at, std::int64_t count) {
        PartLoss part;
        HWY_DYNAMIC_DISPATCH(terms_kernel)
        (count, {from.x + at, from.target + at, from.ignored}, &part.sum, &part.valid);
        return part;
      });
  return {total.sum, total.valid};
}

void sigmoid_loss_backward(std::int64_t n, const SigmoidTargets& from, float scale, float* grad) {
  HWY_DYNAMIC_DISPATCH(sigmoid_slopes_kernel)(n, from, scale, grad);
}

}  // namespace speedo::cpu
#endif
