#include "cpu/elementwise.hpp"

#include <bit>
#include <cmath>

#include <speedo/base/random.hpp>

#include "cpu/simd.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise.cpp"
#include <hwy/foreach_target.h>

#include "cpu/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// y[i] = f(x[i]) and y[i] = f(a[i], b[i]).
template <class F>
HWY_INLINE void map(std::int64_t n, const float* x, float* y, const F& f) {
  const F32 d;
  for_each_vector(
      d, n, [&](std::int64_t i, auto access) { access.store(f(access.load(d, x + i)), d, y + i); });
}
template <class F>
HWY_INLINE void map(std::int64_t n, const float* a, const float* b, float* y, const F& f) {
  const F32 d;
  for_each_vector(d, n, [&](std::int64_t i, auto access) {
    access.store(f(access.load(d, a + i), access.load(d, b + i)), d, y + i);
  });
}

// The result must not depend on what y held when beta is 0: fresh memory may hold a NaN.
HWY_FLATTEN void axpby_kernel(std::int64_t n, float alpha, const float* x, float beta, float* y) {
  const auto a = hn::Set(F32(), alpha);
  if (beta == 0.0F) {
    map(n, x, y, [&](auto v) { return hn::Mul(a, v); });
  } else if (beta == 1.0F) {
    map(n, x, y, y, [&](auto v, auto before) { return hn::MulAdd(a, v, before); });
  } else {
    const auto b = hn::Set(F32(), beta);
    map(n, x, y, y, [&](auto v, auto before) { return hn::MulAdd(a, v, hn::Mul(b, before)); });
  }
}

HWY_FLATTEN void multiply_kernel(std::int64_t n, const float* a, const float* b, float* y) {
  map(n, a, b, y, [](auto u, auto v) { return hn::Mul(u, v); });
}

HWY_FLATTEN void divide_kernel(std::int64_t n, const float* a, const float* b, float* y) {
  map(n, a, b, y, [](auto u, auto v) { return hn::Div(u, v); });
}

HWY_FLATTEN void add_scalar_kernel(std::int64_t n, float value, float* y) {
  const auto more = hn::Set(F32(), value);
  map(n, y, y, [&](auto v) { return hn::Add(v, more); });
}

HWY_FLATTEN void fill_kernel(std::int64_t n, float value, float* y) {
  const F32 d;
  const auto v = hn::Set(d, value);
  for_each_vector(d, n, [&](std::int64_t i, auto access) { access.store(v, d, y + i); });
}

HWY_FLATTEN void max_forward_kernel(std::int64_t n, const float* a, const float* b, bool first,
                                    float b_index, float* mask, float* y) {
  const F32 d;
  const auto index = hn::Set(d, b_index);
  for_each_vector(d, n, [&](std::int64_t i, auto access) {
    const auto u = access.load(d, a + i);
    const auto v = access.load(d, b + i);
    if (first) {
      const auto a_wins = hn::Gt(u, v);
      access.store(hn::IfThenZeroElse(a_wins, index), d, mask + i);
      access.store(hn::IfThenElse(a_wins, u, v), d, y + i);
    } else {
      const auto b_wins = hn::Gt(v, u);
      access.store(hn::IfThenElse(b_wins, index, access.load(d, mask + i)), d, mask + i);
      access.store(hn::IfThenElse(b_wins, v, u), d, y + i);
    }
  });
}

HWY_FLATTEN void max_backward_kernel(std::int64_t n, const float* mask, float index,
                                     const float* y_grad, float* x_grad) {
  const auto wanted = hn::Set(F32(), index);
  map(n, mask, y_grad, x_grad,
      [&](auto winner, auto grad) { return hn::IfThenElseZero(hn::Eq(winner, wanted), grad); });
}

// The 24 random bits are compared as integers: ratio * 2^24 is exact in a float.
HWY_FLATTEN void dropout_mask_kernel(std::int64_t n, float ratio, std::uint64_t seed, float* mask) {
  const float scale = 1.0F / (1.0F - ratio);
  const auto threshold = static_cast<std::uint64_t>(std::ceil(ratio * 16777216.0F));
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint64_t> d;
  const hn::ScalableTag<std::uint32_t> d32;
  const hn::RebindToSigned<decltype(d32)> di32;
  const F32 df;
  const auto kept = hn::Set(df, scale);
  const auto below = hn::Set(di32, static_cast<std::int32_t>(threshold) - 1);
  // mix64() of base/random.hpp, but for its last shift: the upper halves are enough.
  const auto mixed = [&](auto counter) {
    auto z = counter;
    z = hn::Mul(hn::Xor(z, hn::ShiftRight<30>(z)), hn::Set(d, 0xbf58476d1ce4e5b9U));
    z = hn::Mul(hn::Xor(z, hn::ShiftRight<27>(z)), hn::Set(d, 0x94d049bb133111ebU));
    return hn::BitCast(d32, hn::Xor(z, hn::ShiftRight<31>(z)));
  };
  const std::int64_t step = lanes(d);
  const auto advance = hn::Set(d, static_cast<std::uint64_t>(step));
  auto counter = hn::Iota(d, seed + 0x9e3779b97f4a7c15U);
  for (; i + 2 * step <= n; i += 2 * step) {
    const auto low = mixed(counter);
    counter = hn::Add(counter, advance);
    const auto high = mixed(counter);
    counter = hn::Add(counter, advance);
    const auto bits = hn::ShiftRight<8>(hn::ConcatOdd(d32, high, low));
    const auto is_kept = hn::Gt(hn::BitCast(di32, bits), below);
    hn::StoreU(hn::IfThenElseZero(hn::RebindMask(df, is_kept), kept), df, mask + i);
  }
#endif
  for (; i < n; ++i) {
    const std::uint64_t bits = mix64(seed + static_cast<std::uint64_t>(i)) >> 40U;
    mask[i] = bits >= threshold ? scale : 0.0F;
  }
}

// Calls store(place, access, weight, update) for each vector, after the history has been advanced.
template <class Store>
HWY_INLINE void advance_history(std::int64_t n, const SgdStep& step, const float* weights,
                                float* history, const float* grad, const Store& store) {
  const F32 d;
  const auto zero = hn::Zero(d);
  const auto scale = hn::Set(d, step.scale), l1 = hn::Set(d, step.l1), l2 = hn::Set(d, step.l2);
  const auto rate = hn::Set(d, step.rate), momentum = hn::Set(d, step.momentum);
  for_each_vector(d, n, [&](std::int64_t i, auto access) {
    const auto w = access.load(d, weights + i);
    const auto signed_l1 = hn::Xor(l1, hn::And(hn::SignBit(d), w));
    const auto sign_l1 = hn::IfThenZeroElse(hn::Eq(w, zero), signed_l1);
    auto g = hn::MulAdd(scale, access.load(d, grad + i), hn::MulAdd(l2, w, sign_l1));
    g = hn::MulAdd(momentum, access.load(d, history + i), hn::Mul(rate, g));
    access.store(g, d, history + i);
    store(i, access, w, g);
  });
}

HWY_FLATTEN void sgd_update_kernel(std::int64_t n, const SgdStep& step, const float* weights,
                                   float* history, float* grad) {
  advance_history(n, step, weights, history, grad,
                  [&](std::int64_t i, auto access, auto /*weight*/, auto update) {
                    access.store(update, F32(), grad + i);
                  });
}

HWY_FLATTEN void sgd_step_kernel(std::int64_t n, const SgdStep& step, float* weights,
                                 float* history, float* grad) {
  advance_history(n, step, weights, history, grad,
                  [&](std::int64_t i, auto access, auto weight, auto update) {
                    access.store(update, F32(), grad + i);
                    access.store(hn::Sub(weight, update), F32(), weights + i);
                  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(axpby_kernel);
HWY_EXPORT(multiply_kernel);
HWY_EXPORT(divide_kernel);
HWY_EXPORT(add_scalar_kernel);
HWY_EXPORT(fill_kernel);
HWY_EXPORT(max_forward_kernel);
HWY_EXPORT(max_backward_kernel);
HWY_EXPORT(dropout_mask_kernel);
HWY_EXPORT(sgd_update_kernel);
HWY_EXPORT(sgd_step_kernel);

}  // namespace

void axpby(std::int64_t n, float alpha, const float* x, float beta, float* y) {
  HWY_DYNAMIC_DISPATCH(axpby_kernel)(n, alpha, x, beta, y);
}
void multiply(std::int64_t n, const float* a, const float* b, float* y) {
  HWY_DYNAMIC_DISPATCH(multiply_kernel)(n, a, b, y);
}
void divide(std::int64_t n, const float* a, const float* b, float* y) {
  HWY_DYNAMIC_DISPATCH(divide_kernel)(n, a, b, y);
}
void square(std::int64_t n, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(multiply_kernel)(n, x, x, y);
}
void add_scalar(std::int64_t n, float value, float* y) {
  HWY_DYNAMIC_DISPATCH(add_scalar_kernel)(n, value, y);
}
void fill(std::int64_t n, float value, float* y) { HWY_DYNAMIC_DISPATCH(fill_kernel)(n, value, y); }
void dropout_mask(std::int64_t n, float ratio, std::uint64_t seed, float* mask) {
  HWY_DYNAMIC_DISPATCH(dropout_mask_kernel)(n, ratio, seed, mask);
}
void max_forward(std::int64_t n, const float* a, const float* b, bool first, float b_index,
                 float* mask, float* y) {
  HWY_DYNAMIC_DISPATCH(max_forward_kernel)(n, a, b, first, b_index, mask, y);
}
void max_backward(std::int64_t n, const float* mask, float index, const float* y_grad,
                  float* x_grad) {
  HWY_DYNAMIC_DISPATCH(max_backward_kernel)(n, mask, index, y_grad, x_grad);
}
void sgd_update(std::int64_t n, const SgdStep& step, const float* weights, float* history,
                float* grad) {
  HWY_DYNAMIC_DISPATCH(sgd_update_kernel)(n, step, weights, history, grad);
}
void sgd_step(std::int64_t n, const SgdStep& step, float* weights, float* history, float* grad) {
  HWY_DYNAMIC_DISPATCH(sgd_step_kernel)(n, step, weights, history, grad);
}

}  // namespace speedo::cpu
#endif
