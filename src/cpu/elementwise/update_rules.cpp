// Solvers' update rules: each reads and writes all its arrays once.

#include "cpu/elementwise/elementwise.hpp"

#include <cstdint>
#include <limits>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/update_rules.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// Calls body(place, access, weight, gradient) for each vector, the gradient scaled and with decay.
template <class Body>
HWY_INLINE void for_each_gradient(std::int64_t n, const SgdStep& step, const float* weights,
                                  const float* grad, const Body& body) {
  const F32 d;
  const auto zero = hn::Zero(d);
  const auto scale = hn::Set(d, step.scale), l1 = hn::Set(d, step.l1), l2 = hn::Set(d, step.l2);
  for_each_vector(d, n, [&](std::int64_t i, auto access) {
    const auto w = access.load(d, weights + i);
    const auto signed_l1 = hn::Xor(l1, hn::And(hn::SignBit(d), w));
    const auto sign_l1 = hn::IfThenZeroElse(hn::Eq(w, zero), signed_l1);
    body(i, access, w, hn::MulAdd(scale, access.load(d, grad + i), hn::MulAdd(l2, w, sign_l1)));
  });
}

// What becomes of an update: it is left where the gradient was, with a sign ...
class Leave {
 public:
  Leave(float sign, float* grad) : sign_(sign), grad_(grad) {}
  template <class Access, class V>
  HWY_INLINE void operator()(std::int64_t i, Access access, V /*weight*/, V update) const {
    access.store(hn::Mul(hn::Set(F32(), sign_), update), F32(), grad_ + i);
  }

 private:
  float sign_;
  float* grad_;
};

// ... or also taken from the weights.
class Apply {
 public:
  Apply(float* weights, float* grad) : weights_(weights), grad_(grad) {}
  template <class Access, class V>
  HWY_INLINE void operator()(std::int64_t i, Access access, V weight, V update) const {
    access.store(update, F32(), grad_ + i);
    access.store(hn::Sub(weight, update), F32(), weights_ + i);
  }

 private:
  float* weights_;
  float* grad_;
};

struct Arrays {
  const float* weights;
  const float* grad;
  AdaptiveHistories histories;
};

template <class Store>
HWY_INLINE void sgd(std::int64_t n, const SgdStep& step, const Arrays& arrays, const Store& store) {
  const F32 d;
  const auto rate = hn::Set(d, step.rate), momentum = hn::Set(d, step.momentum);
  float* const history = arrays.histories.first;
  for_each_gradient(
      n, step, arrays.weights, arrays.grad, [&](std::int64_t i, auto access, auto w, auto g) {
        const auto h = hn::MulAdd(momentum, access.load(d, history + i), hn::Mul(rate, g));
        access.store(h, d, history + i);
        store(i, access, w, h);
      });
}

template <class V>
HWY_INLINE V as_squares(V value) {
  const F32 d;
  return hn::Min(hn::Max(value, hn::Zero(d)), hn::Set(d, std::numeric_limits<float>::max()));
}

// d a + (1 - d) x^2
template <class V>
HWY_INLINE V mean_square(float decay, V squares, V x) {
  const F32 d;
  const auto fresh = hn::Mul(hn::Set(d, 1.0F - decay), hn::Mul(x, x));
  return as_squares(hn::MulAdd(hn::Set(d, decay), squares, fresh));
}

// Of AdaGrad and RMSProp: `accumulate`(squares, gradient) gives the new squares.
template <class Store, class Accumulate>
HWY_INLINE void over_root(std::int64_t n, const AdaptiveStep& step, const Arrays& arrays,
                          const Store& store, const Accumulate& accumulate) {
  const F32 d;
  const auto rate = hn::Set(d, step.base.rate), delta = hn::Set(d, step.delta);
  float* const squares = arrays.histories.first;
  for_each_gradient(n, step.base, arrays.weights, arrays.grad,
                    [&](std::int64_t i, auto access, auto w, auto g) {
                      const auto a = accumulate(access.load(d, squares + i), g);
                      access.store(a, d, squares + i);
                      const auto root = hn::Add(hn::Sqrt(a), delta);
                      store(i, access, w, hn::Mul(rate, hn::Div(g, root)));
                    });
}

template <class Store>
HWY_INLINE void ada_delta(std::int64_t n, const AdaptiveStep& step, const Arrays& arrays,
                          const Store& store) {
  const F32 d;
  const auto rate = hn::Set(d, step.base.rate), delta = hn::Set(d, step.delta);
  float* const gradients = arrays.histories.first;
  float* const updates = arrays.histories.second;
  const float decay = step.squares_decay;
  for_each_gradient(
      n, step.base, arrays.weights, arrays.grad, [&](std::int64_t i, auto access, auto w, auto g) {
        const auto a = mean_square(decay, access.load(d, gradients + i), g);
        const auto b = as_squares(access.load(d, updates + i));
        const auto u = hn::Mul(g, hn::Sqrt(hn::Div(hn::Add(b, delta), hn::Add(a, delta))));
        access.store(a, d, gradients + i);
        access.store(mean_square(decay, b, u), d, updates + i);
        store(i, access, w, hn::Mul(rate, u));
      });
}

template <class Store>
HWY_INLINE void adam(std::int64_t n, const AdaptiveStep& step, const Arrays& arrays,
                     const Store& store) {
  const F32 d;
  const auto rate = hn::Set(d, step.base.rate), delta = hn::Set(d, step.delta);
  const auto momentum = hn::Set(d, step.base.momentum);
  const auto rest = hn::Set(d, 1.0F - step.base.momentum);
  float* const means = arrays.histories.first;
  float* const squares = arrays.histories.second;
  for_each_gradient(
      n, step.base, arrays.weights, arrays.grad, [&](std::int64_t i, auto access, auto w, auto g) {
        const auto a = hn::MulAdd(momentum, access.load(d, means + i), hn::Mul(rest, g));
        const auto b = mean_square(step.squares_decay, access.load(d, squares + i), g);
        access.store(a, d, means + i);
        access.store(b, d, squares + i);
        const auto root = hn::Add(hn::Sqrt(b), delta);
        store(i, access, w, hn::Mul(rate, hn::Div(a, root)));
      });
}

template <class Store>
HWY_INLINE void adaptive(std::int64_t n, const AdaptiveStep& step, const Arrays& arrays,
                         const Store& store) {
  switch (step.kind) {
    case AdaptiveKind::kAdaGrad:
      return over_root(n, step, arrays, store,
                       [](auto squares, auto g) { return as_squares(hn::MulAdd(g, g, squares)); });
    case AdaptiveKind::kRmsProp:
      return over_root(n, step, arrays, store, [&](auto squares, auto g) {
        return mean_square(step.squares_decay, squares, g);
      });
    case AdaptiveKind::kAdaDelta:
      return ada_delta(n, step, arrays, store);
    case AdaptiveKind::kAdam:
      return adam(n, step, arrays, store);
  }
}

HWY_FLATTEN void sgd_update_kernel(std::int64_t n, const SgdStep& step, const float* weights,
                                   float* history, float* grad) {
  sgd(n, step, {weights, grad, {history}}, Leave(step.sign, grad));
}
HWY_FLATTEN void sgd_step_kernel(std::int64_t n, const SgdStep& step, float* weights,
                                 float* history, float* grad) {
  sgd(n, step, {weights, grad, {history}}, Apply(weights, grad));
}
HWY_FLATTEN void adaptive_update_kernel(std::int64_t n, const AdaptiveStep& step,
                                        const float* weights, AdaptiveHistories histories,
                                        float* grad) {
  adaptive(n, step, {weights, grad, histories}, Leave(step.base.sign, grad));
}
HWY_FLATTEN void adaptive_step_kernel(std::int64_t n, const AdaptiveStep& step, float* weights,
                                      AdaptiveHistories histories, float* grad) {
  adaptive(n, step, {weights, grad, histories}, Apply(weights, grad));
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(sgd_update_kernel);
HWY_EXPORT(sgd_step_kernel);
HWY_EXPORT(adaptive_update_kernel);
HWY_EXPORT(adaptive_step_kernel);

}  // namespace

void sgd_update(std::int64_t n, const SgdStep& step, const float* weights, float* history,
                float* grad) {
  HWY_DYNAMIC_DISPATCH(sgd_update_kernel)(n, step, weights, history, grad);
}
void sgd_step(std::int64_t n, const SgdStep& step, float* weights, float* history, float* grad) {
  HWY_DYNAMIC_DISPATCH(sgd_step_kernel)(n, step, weights, history, grad);
}
void adaptive_update(std::int64_t n, const AdaptiveStep& step, const float* weights,
                     AdaptiveHistories histories, float* grad) {
  HWY_DYNAMIC_DISPATCH(adaptive_update_kernel)(n, step, weights, histories, grad);
}
void adaptive_step(std::int64_t n, const AdaptiveStep& step, float* weights,
                   AdaptiveHistories histories, float* grad) {
  HWY_DYNAMIC_DISPATCH(adaptive_step_kernel)(n, step, weights, histories, grad);
}

}  // namespace speedo::cpu
#endif
