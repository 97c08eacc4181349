#include "cpu/elementwise.hpp"

#include <cmath>

#include <speedo/base/random.hpp>

#include "base/simd.hpp"

namespace speedo::cpu {

// The result must not depend on what y held when beta is 0: fresh memory may hold a NaN.
SPEEDO_MULTIVERSION
void axpby(std::int64_t n, float alpha, const float* x, float beta, float* y) {
  if (beta == 0.0F) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = alpha * x[i];
  } else if (beta == 1.0F) {
    for (std::int64_t i = 0; i < n; ++i) y[i] += alpha * x[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = alpha * x[i] + beta * y[i];
  }
}

SPEEDO_MULTIVERSION
void multiply(std::int64_t n, const float* a, const float* b, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

SPEEDO_MULTIVERSION
void divide(std::int64_t n, const float* a, const float* b, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] / b[i];
}

SPEEDO_MULTIVERSION
void square(std::int64_t n, const float* x, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}

namespace {

// x^-0.75, the exponent of nearly every local response normalization.
SPEEDO_MULTIVERSION
void power_minus_three_quarters(std::int64_t n, const float* x, float* y) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float root = std::sqrt(x[i]);
    y[i] = 1.0F / (root * std::sqrt(root));
  }
}

}  // namespace

void power(std::int64_t n, const float* x, float exponent, float* y) {
  if (exponent == -0.75F) {
    power_minus_three_quarters(n, x, y);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::pow(x[i], exponent);
}

SPEEDO_MULTIVERSION
void add_scalar(std::int64_t n, float value, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += value;
}

SPEEDO_MULTIVERSION
void fill(std::int64_t n, float value, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = value;
}

// Sums run in lanes: the compiler may not reorder a floating-point sum by itself.
namespace {
constexpr std::int64_t kLanes = 16;

template <class T>
T add_lanes(const T* lanes) {
  T total = 0;
  for (std::int64_t k = 0; k < kLanes; ++k) total += lanes[k];
  return total;
}
}  // namespace

SPEEDO_MULTIVERSION
double dot(std::int64_t n, const float* x, const float* y) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t k = 0; k < kLanes; ++k) {
      lanes[k] += static_cast<double>(x[i + k]) * static_cast<double>(y[i + k]);
    }
  }
  for (; i < n; ++i) lanes[0] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return add_lanes(lanes);
}

SPEEDO_MULTIVERSION
double sum_abs(std::int64_t n, const float* x) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t k = 0; k < kLanes; ++k) lanes[k] += std::fabs(x[i + k]);
  }
  for (; i < n; ++i) lanes[0] += std::fabs(x[i]);
  return add_lanes(lanes);
}

SPEEDO_MULTIVERSION
float sum(std::int64_t n, const float* x) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t k = 0; k < kLanes; ++k) lanes[k] += x[i + k];
  }
  for (; i < n; ++i) lanes[0] += x[i];
  return add_lanes(lanes);
}

SPEEDO_MULTIVERSION
void relu_forward(std::int64_t n, float negative_slope, const float* x, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] > 0.0F ? x[i] : negative_slope * x[i];
}

SPEEDO_MULTIVERSION
void relu_backward(std::int64_t n, float negative_slope, const float* x, const float* y_grad,
                   float* x_grad) {
  for (std::int64_t i = 0; i < n; ++i) {
    x_grad[i] = y_grad[i] * (x[i] > 0.0F ? 1.0F : negative_slope);
  }
}

// The 24 random bits are compared as integers: ratio * 2^24 is exact in a float.
SPEEDO_MULTIVERSION
void dropout_mask(std::int64_t n, float ratio, std::uint64_t seed, float* mask) {
  const float scale = 1.0F / (1.0F - ratio);
  const auto threshold = static_cast<std::uint64_t>(std::ceil(ratio * 16777216.0F));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t bits = mix64(seed + static_cast<std::uint64_t>(i)) >> 40U;
    mask[i] = bits >= threshold ? scale : 0.0F;
  }
}

SPEEDO_MULTIVERSION
void max_forward(std::int64_t n, const float* a, const float* b, bool first, float b_index,
                 float* mask, float* y) {
  if (first) {
    for (std::int64_t i = 0; i < n; ++i) {
      const bool a_wins = a[i] > b[i];
      mask[i] = a_wins ? 0.0F : b_index;
      y[i] = a_wins ? a[i] : b[i];
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      const bool b_wins = b[i] > a[i];
      mask[i] = b_wins ? b_index : mask[i];
      y[i] = b_wins ? b[i] : a[i];
    }
  }
}

SPEEDO_MULTIVERSION
void max_backward(std::int64_t n, const float* mask, float index, const float* y_grad,
                  float* x_grad) {
  for (std::int64_t i = 0; i < n; ++i) x_grad[i] = mask[i] == index ? y_grad[i] : 0.0F;
}

SPEEDO_MULTIVERSION
void sgd_update(std::int64_t n, const SgdStep& step, const float* weights, float* history,
                float* grad) {
  const SgdStep s = step;
  for (std::int64_t i = 0; i < n; ++i) {
    const float w = weights[i];
    const float sign = (w > 0.0F ? 1.0F : 0.0F) - (w < 0.0F ? 1.0F : 0.0F);
    const float g = s.scale * grad[i] + s.l2 * w + s.l1 * sign;
    const float h = s.momentum * history[i] + s.rate * g;
    history[i] = h;
    grad[i] = h;
  }
}

}  // namespace speedo::cpu
