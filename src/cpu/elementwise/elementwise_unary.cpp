// The functions of UnaryKind and their slopes.

#include <speedo/backend/unary_op.hpp>

#include "cpu/elementwise/elementwise.hpp"
#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/elementwise_unary.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/vector_math.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

using V32 = hn::Vec<F32>;

// An operation's constants in every lane.
struct Constants {
  explicit Constants(const UnaryOp& op)
      : a(hn::Set(F32(), op.a)), b(hn::Set(F32(), op.b)), c(hn::Set(F32(), op.c)) {}
  V32 zero = hn::Zero(F32()), one = hn::Set(F32(), 1.0F);
  V32 a, b, c;
};

HWY_INLINE V32 softplus(V32 x) {
  const F32 d;
  return hn::Add(hn::Max(x, hn::Zero(d)), log_of_one_and_exponential(d, x));
}

// e^x - 1, for x <= 0.
HWY_INLINE V32 below_zero(V32 x) {
  const F32 d;
  return hn::IfThenElse(hn::Eq(x, x), hn::Expm1(d, hn::Max(x, hn::Set(d, -87.0F))), x);
}

// Comparisons keep a NaN, which a minimum may lose.
HWY_INLINE V32 clipped(V32 x, V32 low, V32 high) {
  return hn::IfThenElse(hn::Lt(x, low), low, hn::IfThenElse(hn::Gt(x, high), high, x));
}

// Slope a + y where the sign is not positive, else 1.
HWY_INLINE void elu_slopes(std::int64_t n, V32 a, const float* signs, const float* y,
                           const float* y_grad, float* x_grad) {
  const F32 d;
  for_each_vector(d, n, [&](std::int64_t i, auto access) {
    const V32 grad = access.load(d, y_grad + i);
    const V32 below = hn::Mul(hn::Add(a, access.load(d, y + i)), grad);
    const auto above = hn::Gt(access.load(d, signs + i), hn::Zero(d));
    access.store(hn::IfThenElse(above, grad, below), d, x_grad + i);
  });
}

HWY_FLATTEN void map_kernel(const UnaryOp& op, std::int64_t n, const float* x, float* y) {
  const F32 d;
  const Constants k(op);
  switch (op.kind) {
    case UnaryKind::kAbs:
      return map(n, x, y, [](V32 v) { return hn::Abs(v); });
    case UnaryKind::kBnll:
      return map(n, x, y, [](V32 v) { return softplus(v); });
    case UnaryKind::kClip:
      return map(n, x, y, [&](V32 v) { return clipped(v, k.a, k.b); });
    case UnaryKind::kElu:
      return map(n, x, y, [&](V32 v) {
        return hn::IfThenElse(hn::Gt(v, k.zero), v, hn::Mul(k.a, below_zero(v)));
      });
    case UnaryKind::kExp:
      return map(n, x, y, [&](V32 v) { return hn::Mul(k.b, exponential(d, hn::Mul(k.a, v))); });
    case UnaryKind::kLog:
      return map(n, x, y,
                 [&](V32 v) { return hn::Mul(k.c, logarithm(d, hn::MulAdd(k.a, v, k.b))); });
    case UnaryKind::kPower:
      return power(op, n, x, y);
    case UnaryKind::kRelu:
      return map(n, x, y,
                 [&](V32 v) { return hn::IfThenElse(hn::Gt(v, k.zero), v, hn::Mul(k.a, v)); });
    case UnaryKind::kSigmoid:
      return map(n, x, y, [&](V32 v) { return sigmoid(d, v); });
    case UnaryKind::kSwish:
      return map(n, x, y, [&](V32 v) { return hn::Mul(v, sigmoid(d, hn::Mul(k.a, v))); });
    case UnaryKind::kTanh:
      return map(n, x, y, [&](V32 v) { return hyperbolic_tangent(d, v); });
    case UnaryKind::kThreshold:
      return map(n, x, y, [&](V32 v) { return hn::IfThenElseZero(hn::Gt(v, k.a), k.one); });
  }
}

HWY_FLATTEN void map_backward_kernel(const UnaryOp& op, std::int64_t n, const float* x,
                                     const float* y, const float* y_grad, float* x_grad) {
  const F32 d;
  const Constants k(op);
  // x_grad[i] = slope(values[i]) y_grad[i]
  const auto slopes = [&](const float* values, const auto& slope) {
    map(n, values, y_grad, x_grad, [&](V32 v, V32 grad) { return hn::Mul(slope(v), grad); });
  };
  const float* signs = op.a < 0.0F ? x : y;
  switch (op.kind) {
    case UnaryKind::kAbs:
      return slopes(
          x, [&](V32 v) { return hn::CopySign(hn::IfThenZeroElse(hn::Eq(v, k.zero), k.one), v); });
    case UnaryKind::kBnll:
      return slopes(x, [&](V32 v) { return sigmoid(d, v); });
    case UnaryKind::kClip:
      return slopes(x, [&](V32 v) {
        return hn::IfThenElseZero(hn::And(hn::Ge(v, k.a), hn::Le(v, k.b)), k.one);
      });
    case UnaryKind::kElu:
      return elu_slopes(n, k.a, signs, y, y_grad, x_grad);
    case UnaryKind::kExp:
      return slopes(y, [&](V32 v) { return hn::Mul(k.a, v); });
    case UnaryKind::kLog:
      return slopes(x, [&](V32 v) { return hn::Div(hn::Mul(k.a, k.c), hn::MulAdd(k.a, v, k.b)); });
    case UnaryKind::kPower:
      return power_backward(op, n, x, y_grad, x_grad);
    case UnaryKind::kRelu:
      return slopes(signs, [&](V32 v) { return hn::IfThenElse(hn::Gt(v, k.zero), k.one, k.a); });
    case UnaryKind::kSigmoid:
      return slopes(y, [&](V32 v) { return hn::NegMulAdd(v, v, v); });
    case UnaryKind::kSwish:
      return slopes(x, [&](V32 v) {
        const V32 s = sigmoid(d, hn::Mul(k.a, v));
        return hn::MulAdd(hn::Mul(hn::Mul(k.a, v), s), hn::Sub(k.one, s), s);
      });
    case UnaryKind::kTanh:
      return slopes(y, [&](V32 v) { return hn::NegMulAdd(v, v, k.one); });
    case UnaryKind::kThreshold:
      return fill(n, 0.0F, x_grad);
  }
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(map_kernel);
HWY_EXPORT(map_backward_kernel);

}  // namespace

void map(const UnaryOp& op, std::int64_t n, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(map_kernel)(op, n, x, y);
}
void map_backward(const UnaryOp& op, std::int64_t n, const float* x, const float* y,
                  const float* y_grad, float* x_grad) {
  HWY_DYNAMIC_DISPATCH(map_backward_kernel)(op, n, x, y, y_grad, x_grad);
}

}  // namespace speedo::cpu
#endif
