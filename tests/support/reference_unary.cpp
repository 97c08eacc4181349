#include "support/reference_unary.hpp"

#include <algorithm>
#include <cmath>

namespace speedo {

namespace {

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

bool is_rounded_by_no_device(const UnaryOp& op) {
  return op.kind == UnaryKind::kAbs || op.kind == UnaryKind::kClip || op.kind == UnaryKind::kRelu ||
         op.kind == UnaryKind::kThreshold;
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

}  // namespace speedo
