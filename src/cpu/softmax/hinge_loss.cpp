// The hinge loss: all scores of a row are worked on as if no class were the label's, which is then
// put right.

#include "cpu/softmax/losses.hpp"

#include <algorithm>

#include <speedo/backend/labels.hpp>

#include "cpu/support/simd.hpp"
#include "cpu/support/sum_parts.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/softmax/hinge_loss.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// The sum over x of max(0, 1 + x), or of its square.
HWY_FLATTEN double margins_kernel(std::int64_t n, bool squares, const float* x) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const auto one = hn::Set(half, 1.0F);
  auto sum = hn::Zero(d);
  for_each_vector(half, n, [&](std::int64_t i, auto access) {
    const auto score = access.load_or(half, x + i, hn::Set(half, -1.0F));
    const auto m = hn::PromoteTo(d, hn::Max(hn::Zero(half), hn::Add(one, score)));
    sum = squares ? hn::MulAdd(m, m, sum) : hn::Add(sum, m);
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

HWY_FLATTEN void hinge_slopes_kernel(std::int64_t n, bool squares, float scale, const float* x,
                                     float* grad) {
  const F32 d;
  const auto one = hn::Set(d, 1.0F), zero = hn::Zero(d);
  if (squares) {
    const auto factor = hn::Set(d, 2.0F * scale);
    map(n, x, grad, [&](auto v) { return hn::Mul(factor, hn::Max(zero, hn::Add(one, v))); });
  } else {
    const auto factor = hn::Set(d, scale);
    map(n, x, grad,
        [&](auto v) { return hn::IfThenElseZero(hn::Gt(hn::Add(one, v), zero), factor); });
  }
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(margins_kernel);
HWY_EXPORT(hinge_slopes_kernel);

constexpr std::int64_t kHingeGrain = 16384;

std::int64_t row_grain(const Backend::HingeShape& shape) {
  return std::max<std::int64_t>(1, kHingeGrain / std::max<std::int64_t>(1, shape.classes));
}

float margin_of_label(float score) { return std::max(0.0F, 1.0F - score); }

double row_loss(const Backend::HingeShape& shape, const float* scores, std::int64_t label) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(margins_kernel);
  const auto m = static_cast<double>(margin_of_label(scores[label]));
  return kernel(label, shape.squares, scores) + (shape.squares ? m * m : m) +
         kernel(shape.classes - label - 1, shape.squares, scores + label + 1);
}

}  // namespace

Backend::LabelLoss hinge_loss(ThreadPool& pool, const Backend::HingeShape& shape,
                              const float* scores, const float* labels) {
  Backend::LabelLoss loss;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    if (label_index(labels[r], shape.classes) >= 0) continue;
    loss.bad_index = r;
    loss.bad_label = labels[r];
    return loss;
  }
  loss.valid = shape.rows;
  loss.sum = sum_parts<double>(
      pool, shape.rows, row_grain(shape), [&](std::int64_t first, std::int64_t count) {
        double sum = 0.0;
        for (std::int64_t r = first; r < first + count; ++r) {
          sum += row_loss(shape, scores + r * shape.classes, label_index(labels[r], shape.classes));
        }
        return sum;
      });
  return loss;
}

void hinge_loss_backward(ThreadPool& pool, const Backend::HingeShape& shape, const float* scores,
                         const float* labels, float scale, float* grad) {
  pool.split(shape.rows, row_grain(shape), [&](std::int64_t first, std::int64_t last, int) {
    const std::int64_t begin = first * shape.classes, end = last * shape.classes;
    HWY_DYNAMIC_DISPATCH(hinge_slopes_kernel)
    (end - begin, shape.squares, scale, scores + begin, grad + begin);
    for (std::int64_t r = first; r < last; ++r) {
      const std::int64_t at = r * shape.classes + label_index(labels[r], shape.classes);
      const float m = margin_of_label(scores[at]);
      const float slope = shape.squares ? 2.0F * m : (m > 0.0F ? 1.0F : 0.0F);
      grad[at] = -slope * scale;
    }
  });
}

}  // namespace speedo::cpu
#endif
