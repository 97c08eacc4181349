#include "support/reference/reference_elements.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace speedo {

namespace {

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

float as_square(double value) {
  return static_cast<float>(std::clamp(value, 0.0, double{FLT_MAX}));
}

// The update without its rate.
double adaptive_direction(const AdaptiveStep& step, double g, float& first, float* second) {
  const double d = step.squares_decay, m = step.base.momentum, delta = step.delta;
  switch (step.kind) {
    case AdaptiveKind::kAdaGrad:
      first = as_square(first + g * g);
      return g / (std::sqrt(double{first}) + delta);
    case AdaptiveKind::kRmsProp:
      first = as_square(d * first + (1.0 - d) * g * g);
      return g / (std::sqrt(double{first}) + delta);
    case AdaptiveKind::kAdaDelta: {
      first = as_square(d * first + (1.0 - d) * g * g);
      const double u = g * std::sqrt((as_square(*second) + delta) / (first + delta));
      *second = as_square(d * as_square(*second) + (1.0 - d) * u * u);
      return u;
    }
    case AdaptiveKind::kAdam:
      first = static_cast<float>(m * first + (1.0 - m) * g);
      *second = as_square(d * *second + (1.0 - d) * g * g);
      return first / (std::sqrt(double{*second}) + delta);
  }
  return NAN;
}

}  // namespace

double reference_gradient(const SgdStep& step, float weight, float gradient) {
  const double sign = weight > 0.0F ? 1.0 : (weight < 0.0F ? -1.0 : 0.0);
  return double{step.scale} * gradient + double{step.l2} * weight + step.l1 * sign;
}

void reference_adaptive(std::int64_t n, const AdaptiveStep& step, const float* weights,
                        AdaptiveHistories histories, float* grad) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double g = reference_gradient(step.base, weights[i], grad[i]);
    float* const second = histories.second == nullptr ? nullptr : histories.second + i;
    const double direction = adaptive_direction(step, g, histories.first[i], second);
    grad[i] = static_cast<float>(step.base.sign * step.base.rate * direction);
  }
}

bool is_rounded_by_no_device(const UnaryOp& op) {
  const bool is_product = op.kind == UnaryKind::kPower && op.c == 1.0F && op.b == 0.0F;
  return is_product || op.kind == UnaryKind::kAbs || op.kind == UnaryKind::kClip ||
         op.kind == UnaryKind::kRelu || op.kind == UnaryKind::kThreshold;
}

double reference_value(const UnaryOp& op, double x) {
  const double a = op.a, b = op.b, c = op.c;
  switch (op.kind) {
    case UnaryKind::kAbs:
      return std::fabs(x);
    case UnaryKind::kBnll:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    case UnaryKind::kClip:
      return x < a ? a : (x > b ? b : x);
    case UnaryKind::kElu:
      return x > 0.0 ? x : a * std::expm1(x);
    case UnaryKind::kExp:
      return b * std::exp(a * x);
    case UnaryKind::kLog:
      return c * std::log(a * x + b);
    case UnaryKind::kPower:
      return a * c == 0.0 ? (c == 0.0 ? 1.0 : std::pow(b, c)) : std::pow(a * x + b, c);
    case UnaryKind::kRelu:
      return x > 0.0 ? x : a * x;
    case UnaryKind::kSigmoid:
      return logistic(x);
    case UnaryKind::kSwish:
      return x * logistic(a * x);
    case UnaryKind::kTanh:
      return std::tanh(x);
    case UnaryKind::kThreshold:
      return x > a ? 1.0 : 0.0;
  }
  return NAN;
}

double reference_slope(const UnaryOp& op, double x, double y) {
  const double a = op.a, b = op.b, c = op.c;
  switch (op.kind) {
    case UnaryKind::kAbs:
      return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : 0.0);
    case UnaryKind::kBnll:
      return logistic(x);
    case UnaryKind::kClip:
      return x >= a && x <= b ? 1.0 : 0.0;
    case UnaryKind::kElu:
      return (a < 0.0 ? x : y) > 0.0 ? 1.0 : a + y;
    case UnaryKind::kExp:
      return a * y;
    case UnaryKind::kLog:
      return a * c / (a * x + b);
    case UnaryKind::kPower:
      if (a * c == 0.0) return 0.0;
      return c == 1.0 ? a : a * c * std::pow(a * x + b, c - 1.0);
    case UnaryKind::kRelu:
      return (a < 0.0 ? x : y) > 0.0 ? 1.0 : a;
    case UnaryKind::kSigmoid:
      return y * (1.0 - y);
    case UnaryKind::kSwish: {
      const double s = logistic(a * x);
      return s + a * x * s * (1.0 - s);
    }
    case UnaryKind::kTanh:
      return 1.0 - y * y;
    case UnaryKind::kThreshold:
      return 0.0;
  }
  return NAN;
}

float reference_value(const BinaryOp& op, double x, double y) {
  switch (op.kind) {
    case BinaryKind::kSum:
      return static_cast<float>(double{op.a} * x + (op.b == 0.0F ? 0.0 : double{op.b} * y));
    case BinaryKind::kProduct:
      return static_cast<float>(x * y);
    case BinaryKind::kQuotient:
      return static_cast<float>(x / y);
    case BinaryKind::kMaximum:
      return static_cast<float>(x > y ? x : y);
    case BinaryKind::kChosen:
      return x == double{op.a} ? static_cast<float>(y) : 0.0F;
  }
  return NAN;
}

double reference_reduction(ReduceOp op, std::int64_t n, const float* x, const float* y) {
  double sum = 0.0;
  bool is_finite = true;
  for (std::int64_t i = 0; i < n; ++i) {
    is_finite = is_finite && std::isfinite(x[i]);
    if (op == ReduceOp::kSum) sum += double{x[i]};
    if (op == ReduceOp::kAbsSum) sum += std::fabs(double{x[i]});
    if (op == ReduceOp::kSquareSum) sum += double{x[i]} * double{x[i]};
    if (op == ReduceOp::kDot) sum += double{x[i]} * double{y[i]};
  }
  if (op == ReduceOp::kAllFinite) return is_finite ? 1.0 : 0.0;
  return sum;
}

}  // namespace speedo
