#include "cpu/softmax.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/simd.hpp"
#include "cpu/elementwise.hpp"
#include "cpu/vector_math.hpp"

namespace speedo::cpu {
namespace {

// Positions of the inner axis are worked on together, this many at a time, so that the maxima and
// sums of a tile stay in registers or L1.
constexpr std::int64_t kTile = 64;

SPEEDO_MULTIVERSION
void forward_row(std::int64_t classes, const float* x, float* y) {
  float highest = x[0];
  for (std::int64_t k = 1; k < classes; ++k) highest = x[k] > highest ? x[k] : highest;
  for (std::int64_t k = 0; k < classes; ++k) y[k] = fast_exp(x[k] - highest);
  const float total = sum(classes, y);
  for (std::int64_t k = 0; k < classes; ++k) y[k] /= total;
}

// `width` <= kTile neighbouring positions; classes lie `inner` apart.
SPEEDO_MULTIVERSION
void forward_tile(std::int64_t classes, std::int64_t inner, std::int64_t width, const float* x,
                  float* y) {
  float highest[kTile];
  float sum[kTile] = {};
  for (std::int64_t i = 0; i < width; ++i) highest[i] = x[i];
  for (std::int64_t k = 1; k < classes; ++k) {
    const float* row = x + k * inner;
    for (std::int64_t i = 0; i < width; ++i) highest[i] = row[i] > highest[i] ? row[i] : highest[i];
  }
  for (std::int64_t k = 0; k < classes; ++k) {
    const float* row = x + k * inner;
    float* target = y + k * inner;
    for (std::int64_t i = 0; i < width; ++i) {
      const float value = fast_exp(row[i] - highest[i]);
      target[i] = value;
      sum[i] += value;
    }
  }
  for (std::int64_t k = 0; k < classes; ++k) {
    float* target = y + k * inner;
    for (std::int64_t i = 0; i < width; ++i) target[i] /= sum[i];
  }
}

SPEEDO_MULTIVERSION
void backward_tile(std::int64_t classes, std::int64_t inner, std::int64_t width, const float* y,
                   const float* y_grad, float* x_grad) {
  float dot[kTile] = {};
  for (std::int64_t k = 0; k < classes; ++k) {
    for (std::int64_t i = 0; i < width; ++i) dot[i] += y[k * inner + i] * y_grad[k * inner + i];
  }
  for (std::int64_t k = 0; k < classes; ++k) {
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t at = k * inner + i;
      x_grad[at] = (y_grad[at] - dot[i]) * y[at];
    }
  }
}

// The integer a label stands for (Caffe truncates), or -1 if it is not one of the classes.
std::int64_t label_index(float value, std::int64_t classes) {
  if (!(value > -1.0F && value < static_cast<float>(classes))) return -1;
  return static_cast<std::int64_t>(value);
}

bool is_ignored(float value, const LabelOptions& options) {
  return options.has_ignore && std::trunc(value) == static_cast<float>(options.ignore_label);
}

}  // namespace

void softmax_forward(Backend::SoftmaxShape shape, std::int64_t first, std::int64_t last,
                     const float* x, float* y) {
  const std::int64_t step = shape.classes * shape.inner;
  for (std::int64_t row = first; row < last; ++row) {
    if (shape.inner == 1) {
      forward_row(shape.classes, x + row * step, y + row * step);
      continue;
    }
    for (std::int64_t i = 0; i < shape.inner; i += kTile) {
      forward_tile(shape.classes, shape.inner, std::min(kTile, shape.inner - i), x + row * step + i,
                   y + row * step + i);
    }
  }
}

void softmax_backward(Backend::SoftmaxShape shape, std::int64_t first, std::int64_t last,
                      const float* y, const float* y_grad, float* x_grad) {
  const std::int64_t step = shape.classes * shape.inner;
  for (std::int64_t row = first; row < last; ++row) {
    for (std::int64_t i = 0; i < shape.inner; i += kTile) {
      const std::int64_t at = row * step + i;
      backward_tile(shape.classes, shape.inner, std::min(kTile, shape.inner - i), y + at,
                    y_grad + at, x_grad + at);
    }
  }
}

Backend::SoftmaxLoss softmax_loss(Backend::SoftmaxShape shape, const float* probability,
                                  const float* labels, LabelOptions options) {
  Backend::SoftmaxLoss loss;
  for (std::int64_t i = 0; i < shape.outer * shape.inner; ++i) {
    if (is_ignored(labels[i], options)) continue;
    const std::int64_t label = label_index(labels[i], shape.classes);
    if (label < 0) {
      loss.bad_index = i;
      loss.bad_label = labels[i];
      return loss;
    }
    const std::int64_t row = i / shape.inner;
    const float p = probability[(row * shape.classes + label) * shape.inner + i % shape.inner];
    loss.sum -= std::log(static_cast<double>(p < FLT_MIN ? FLT_MIN : p));
    loss.valid += 1;
  }
  return loss;
}

void softmax_loss_backward(Backend::SoftmaxShape shape, std::int64_t first, std::int64_t last,
                           const float* probability, const float* labels, LabelOptions options,
                           float scale, float* grad) {
  const std::int64_t step = shape.classes * shape.inner;
  for (std::int64_t at = first * step; at < last * step; ++at) grad[at] = scale * probability[at];
  for (std::int64_t i = first * shape.inner; i < last * shape.inner; ++i) {
    float* target = grad + i / shape.inner * step + i % shape.inner;
    if (is_ignored(labels[i], options)) {
      for (std::int64_t k = 0; k < shape.classes; ++k) target[k * shape.inner] = 0.0F;
      continue;
    }
    const std::int64_t at = label_index(labels[i], shape.classes) * shape.inner;
    const float p = probability[i / shape.inner * step + i % shape.inner + at];
    target[at] = scale * (p - 1.0F);
  }
}

}  // namespace speedo::cpu
