#include "support/reference/reference_rows.hpp"

#include <algorithm>
#include <cmath>

#include "support/reference/reference_elements.hpp"

namespace speedo {
namespace {

double mean_of(std::int64_t n, const float* x) {
  return reference_reduction(ReduceOp::kSum, n, x, nullptr) / static_cast<double>(n);
}

// 1 - s x, where that is above 0.
double margin(double sign, double x) { return std::max(0.0, 1.0 - sign * x); }

bool is_ignored(float target, std::optional<int> ignored) {
  return ignored && std::trunc(target) == static_cast<float>(*ignored);
}

}  // namespace

void reference_reduce_rows(ReduceOp op, const Backend::RowsShape& shape, float scale,
                           const float* x, float* y) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const double value = reference_reduction(op, shape.columns, x + r * shape.columns, nullptr);
    y[r] = static_cast<float>(double{scale} * value);
  }
}

void reference_normalize_rows(const Backend::RowNorm& norm, const float* x, float* y,
                              float* deviation) {
  const std::int64_t n = norm.shape.columns;
  for (std::int64_t r = 0; r < norm.shape.rows; ++r) {
    const double mean = mean_of(n, x + r * n);
    double squares = 0.0;
    for (std::int64_t i = r * n; i < (r + 1) * n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double root = std::sqrt(squares / static_cast<double>(n));
    deviation[r] = norm.epsilon ? static_cast<float>(root + double{*norm.epsilon}) : 1.0F;
    for (std::int64_t i = r * n; i < (r + 1) * n; ++i) {
      y[i] = static_cast<float>((x[i] - mean) / double{deviation[r]});
    }
  }
}

void reference_normalize_rows_backward(const Backend::RowNorm& norm, const float* y,
                                       const float* deviation, const float* y_grad, float* x_grad) {
  const std::int64_t n = norm.shape.columns;
  for (std::int64_t r = 0; r < norm.shape.rows; ++r) {
    const double mean = mean_of(n, y_grad + r * n);
    const double product =
        reference_reduction(ReduceOp::kDot, n, y + r * n, y_grad + r * n) / static_cast<double>(n);
    for (std::int64_t i = r * n; i < (r + 1) * n; ++i) {
      const double part = norm.epsilon ? y[i] * product : 0.0;
      const double divisor = norm.epsilon ? double{deviation[r]} : 1.0;
      x_grad[i] = static_cast<float>((y_grad[i] - mean - part) / divisor);
    }
  }
}

Backend::LabelLoss reference_hinge_loss(const Backend::HingeShape& shape, const float* scores,
                                        const float* labels) {
  Backend::LabelLoss loss;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    if (!(labels[r] > -1.0F && labels[r] < static_cast<float>(shape.classes))) {
      loss.bad_index = r;
      loss.bad_label = labels[r];
      return loss;
    }
    for (std::int64_t k = 0; k < shape.classes; ++k) {
      const double sign = k == static_cast<std::int64_t>(labels[r]) ? 1.0 : -1.0;
      const double m = margin(sign, scores[r * shape.classes + k]);
      loss.sum += shape.squares ? m * m : m;
    }
    loss.valid += 1;
  }
  return loss;
}

void reference_hinge_loss_backward(const Backend::HingeShape& shape, const float* scores,
                                   const float* labels, float scale, float* grad) {
  for (std::int64_t i = 0; i < shape.rows * shape.classes; ++i) {
    const auto label = static_cast<std::int64_t>(labels[i / shape.classes]);
    const double sign = i % shape.classes == label ? 1.0 : -1.0;
    const double m = margin(sign, scores[i]);
    const double slope = shape.squares ? 2.0 * m : (m > 0.0 ? 1.0 : 0.0);
    grad[i] = static_cast<float>(-sign * slope * double{scale});
  }
}

Backend::SigmoidLoss reference_sigmoid_loss(std::int64_t n, const float* x, const float* target,
                                            std::optional<int> ignored) {
  Backend::SigmoidLoss loss;
  for (std::int64_t i = 0; i < n; ++i) {
    if (is_ignored(target[i], ignored)) continue;
    const double sign = x[i] >= 0.0F ? 1.0 : 0.0;
    loss.sum += std::log1p(std::exp(-std::fabs(double{x[i]}))) - x[i] * (target[i] - sign);
    loss.valid += 1;
  }
  return loss;
}

void reference_sigmoid_loss_backward(std::int64_t n, const float* x, const float* target,
                                     std::optional<int> ignored, float scale, float* grad) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double sigmoid = 1.0 / (1.0 + std::exp(-double{x[i]}));
    const double slope = is_ignored(target[i], ignored) ? 0.0 : sigmoid - target[i];
    grad[i] = static_cast<float>(double{scale} * slope);
  }
}

}  // namespace speedo
