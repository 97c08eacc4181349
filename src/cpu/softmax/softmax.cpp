#include "cpu/softmax/softmax.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include <speedo/backend/labels.hpp>

#include "cpu/elementwise/elementwise.hpp"
#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/softmax/softmax.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/vector_math.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// Classes lie side by side. A NaN is no maximum, but makes the sum and so the whole row NaN.
HWY_FLATTEN void forward_row_kernel(std::int64_t classes, const float* x, float* y) {
  const F32 d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto highest = lowest;
  for_each_vector(d, classes, [&](std::int64_t k, auto access) {
    const auto value = access.load_or(d, x + k, lowest);
    highest = hn::IfThenElse(hn::Gt(value, highest), value, highest);
  });
  highest = hn::MaxOfLanes(d, highest);
  auto sum = hn::Zero(d);
  for_each_vector(d, classes, [&](std::int64_t k, auto access) {
    const auto value = exponential(d, hn::Sub(access.load_or(d, x + k, lowest), highest));
    sum = hn::Add(sum, value);
    access.store(value, d, y + k);
  });
  const auto share = one_over(hn::SumOfLanes(d, sum));
  for_each_vector(d, classes, [&](std::int64_t k, auto access) {
    access.store(hn::Mul(access.load(d, y + k), share), d, y + k);
  });
}

HWY_FLATTEN void backward_row_kernel(std::int64_t classes, const float* y, const float* y_grad,
                                     float* x_grad) {
  const F32 d;
  auto dot = hn::Zero(d);
  for_each_vector(d, classes, [&](std::int64_t k, auto access) {
    dot = hn::MulAdd(access.load(d, y + k), access.load(d, y_grad + k), dot);
  });
  dot = hn::SumOfLanes(d, dot);
  for_each_vector(d, classes, [&](std::int64_t k, auto access) {
    const auto grad = hn::Sub(access.load(d, y_grad + k), dot);
    access.store(hn::Mul(grad, access.load(d, y + k)), d, x_grad + k);
  });
}

// Classes lie `inner` floats apart: neighbouring positions are worked on together.
HWY_FLATTEN void forward_tile_kernel(std::int64_t classes, std::int64_t inner, const float* x,
                                     float* y) {
  const F32 d;
  for_each_vector(d, inner, [&](std::int64_t i, auto access) {
    auto highest = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (std::int64_t k = 0; k < classes; ++k) {
      const auto value = access.load(d, x + k * inner + i);
      highest = hn::IfThenElse(hn::Gt(value, highest), value, highest);
    }
    auto sum = hn::Zero(d);
    for (std::int64_t k = 0; k < classes; ++k) {
      const auto value = exponential(d, hn::Sub(access.load(d, x + k * inner + i), highest));
      sum = hn::Add(sum, value);
      access.store(value, d, y + k * inner + i);
    }
    const auto share = one_over(sum);
    for (std::int64_t k = 0; k < classes; ++k) {
      float* at = y + k * inner + i;
      access.store(hn::Mul(access.load(d, at), share), d, at);
    }
  });
}

HWY_FLATTEN void backward_tile_kernel(std::int64_t classes, std::int64_t inner, const float* y,
                                      const float* y_grad, float* x_grad) {
  const F32 d;
  for_each_vector(d, inner, [&](std::int64_t i, auto access) {
    auto dot = hn::Zero(d);
    for (std::int64_t at = i; at < classes * inner; at += inner) {
      dot = hn::MulAdd(access.load(d, y + at), access.load(d, y_grad + at), dot);
    }
    for (std::int64_t at = i; at < classes * inner; at += inner) {
      const auto grad = hn::Sub(access.load(d, y_grad + at), dot);
      access.store(hn::Mul(grad, access.load(d, y + at)), d, x_grad + at);
    }
  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(forward_row_kernel);
HWY_EXPORT(backward_row_kernel);
HWY_EXPORT(forward_tile_kernel);
HWY_EXPORT(backward_tile_kernel);

}  // namespace

void softmax_forward(Backend::SoftmaxShape shape, std::int64_t first, std::int64_t last,
                     const float* x, float* y) {
  const std::int64_t step = shape.classes * shape.inner;
  for (std::int64_t at = first * step; at < last * step; at += step) {
    if (shape.inner == 1) {
      HWY_DYNAMIC_DISPATCH(forward_row_kernel)(shape.classes, x + at, y + at);
    } else {
      HWY_DYNAMIC_DISPATCH(forward_tile_kernel)(shape.classes, shape.inner, x + at, y + at);
    }
  }
}

void softmax_backward(Backend::SoftmaxShape shape, std::int64_t first, std::int64_t last,
                      const float* y, const float* y_grad, float* x_grad) {
  const std::int64_t step = shape.classes * shape.inner;
  for (std::int64_t at = first * step; at < last * step; at += step) {
    if (shape.inner == 1) {
      HWY_DYNAMIC_DISPATCH(backward_row_kernel)(shape.classes, y + at, y_grad + at, x_grad + at);
    } else {
      HWY_DYNAMIC_DISPATCH(backward_tile_kernel)
      (shape.classes, shape.inner, y + at, y_grad + at, x_grad + at);
    }
  }
}

Backend::LabelLoss softmax_loss(Backend::SoftmaxShape shape, const float* probability,
                                const float* labels, std::optional<int> ignored) {
  Backend::LabelLoss loss;
  for (std::int64_t i = 0; i < shape.outer * shape.inner; ++i) {
    if (is_ignored(labels[i], ignored)) continue;
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
                           const LabelledRows& from, float scale, float* grad) {
  const std::int64_t step = shape.classes * shape.inner;
  axpby((last - first) * step, scale, from.probability + first * step, 0.0F, grad + first * step);
  for (std::int64_t i = first * shape.inner; i < last * shape.inner; ++i) {
    float* target = grad + i / shape.inner * step + i % shape.inner;
    if (is_ignored(from.labels[i], from.ignored)) {
      for (std::int64_t k = 0; k < shape.classes; ++k) target[k * shape.inner] = 0.0F;
      continue;
    }
    const std::int64_t at = label_index(from.labels[i], shape.classes) * shape.inner;
    const float p = from.probability[i / shape.inner * step + i % shape.inner + at];
    target[at] = scale * (p - 1.0F);
  }
}

}  // namespace speedo::cpu
#endif
