#pragma once

#include <cstdint>
#include <optional>

#include <speedo/backend/backend.hpp>

namespace speedo::cpu {

// Softmax and its loss over outer x classes x inner, for rows `first` .. `last`-1 of outer;
// contracts as in Backend.

void softmax_forward(Backend::SoftmaxShape shape, std::int64_t first, std::int64_t last,
                     const float* x, float* y);
void softmax_backward(Backend::SoftmaxShape shape, std::int64_t first, std::int64_t last,
                      const float* y, const float* y_grad, float* x_grad);

Backend::LabelLoss softmax_loss(Backend::SoftmaxShape shape, const float* probability,
                                const float* labels, std::optional<int> ignored);

// What the loss is computed of.
struct LabelledRows {
  const float* probability;  // outer x classes x inner
  const float* labels;       // outer x inner
  std::optional<int> ignored;
};
void softmax_loss_backward(Backend::SoftmaxShape shape, std::int64_t first, std::int64_t last,
                           const LabelledRows& from, float scale, float* grad);

}  // namespace speedo::cpu
