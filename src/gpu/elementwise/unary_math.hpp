#pragma once

#include <cmath>
#include <optional>

#include <speedo/backend/unary_op.hpp>

#include "gpu/launch/kernel.hpp"

namespace speedo::gpu {

SPEEDO_HOST_DEVICE inline float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

// x^exponent.
SPEEDO_HOST_DEVICE inline float power_of(float x, float exponent) {
  if (exponent == 1.0F) return x;
  if (exponent == 2.0F) return x * x;
  if (exponent == 0.5F) return std::sqrt(x);
  if (exponent == -1.0F) return 1.0F / x;
  return std::pow(x, exponent);
}

// (a x + b)^exponent. A sum with 0 would lose the sign of a zero.
SPEEDO_HOST_DEVICE inline float power_of_sum(const UnaryOp& op, float x, float exponent) {
  const float product = op.a * x;
  return power_of(op.b == 0.0F ? product : product + op.b, exponent);
}

// The functions of UnaryKind.
SPEEDO_HOST_DEVICE inline float mapped(const UnaryOp& op, float x) {
  switch (op.kind) {
    case UnaryKind::kAbs:
      return std::fabs(x);
    case UnaryKind::kBnll:
      return (x > 0.0F ? x : 0.0F) + std::log1p(std::exp(-std::fabs(x)));
    case UnaryKind::kClip:
      return x < op.a ? op.a : (x > op.b ? op.b : x);
    case UnaryKind::kElu:
      return x > 0.0F ? x : op.a * std::expm1(x);
    case UnaryKind::kExp:
      return op.b * std::exp(op.a * x);
    case UnaryKind::kLog:
      return op.c * std::log(op.a * x + op.b);
    case UnaryKind::kPower:
      if (op.c == 0.0F) return 1.0F;
      return op.a == 0.0F ? power_of(op.b, op.c) : power_of_sum(op, x, op.c);
    case UnaryKind::kRelu:
      return x > 0.0F ? x : op.a * x;
    case UnaryKind::kSigmoid:
      return sigmoid(x);
    case UnaryKind::kSwish:
      return x * sigmoid(op.a * x);
    case UnaryKind::kTanh:
      return std::tanh(x);
    case UnaryKind::kThreshold:
      return x > op.a ? 1.0F : 0.0F;
  }
  return x;
}

// Their slopes, from what backward_reads() names of x and y; the other may be anything.
SPEEDO_HOST_DEVICE inline float slope_of(const UnaryOp& op, float x, float y) {
  switch (op.kind) {
    case UnaryKind::kAbs:
      return x > 0.0F ? 1.0F : (x < 0.0F ? -1.0F : 0.0F);
    case UnaryKind::kBnll:
      return sigmoid(x);
    case UnaryKind::kClip:
      return x >= op.a && x <= op.b ? 1.0F : 0.0F;
    case UnaryKind::kElu:
      return (op.a < 0.0F ? x : y) > 0.0F ? 1.0F : op.a + y;
    case UnaryKind::kExp:
      return op.a * y;
    case UnaryKind::kLog:
      return op.a * op.c / (op.a * x + op.b);
    case UnaryKind::kPower:
      if (op.a * op.c == 0.0F) return 0.0F;
      return op.c == 1.0F ? op.a : op.a * op.c * power_of_sum(op, x, op.c - 1.0F);
    case UnaryKind::kRelu:
      return (op.a < 0.0F ? x : y) > 0.0F ? 1.0F : op.a;
    case UnaryKind::kSigmoid:
      return y * (1.0F - y);
    case UnaryKind::kSwish: {
      const float s = sigmoid(op.a * x);
      return s + op.a * x * s * (1.0F - s);
    }
    case UnaryKind::kTanh:
      return 1.0F - y * y;
    case UnaryKind::kThreshold:
      return 0.0F;
  }
  return 0.0F;
}

// A function that an operation applies to its result, or none.
struct Activation {
  UnaryOp op;
  bool is_given = false;

  Activation() = default;
  explicit Activation(const std::optional<UnaryOp>& asked)
      : op(asked.value_or(UnaryOp{})), is_given(asked.has_value()) {}

  SPEEDO_HOST_DEVICE float operator()(float x) const {
    if (!is_given) return x;
    if (op.kind == UnaryKind::kRelu) return x > 0.0F ? x : op.a * x;
    return mapped(op, x);
  }
};

}  // namespace speedo::gpu
