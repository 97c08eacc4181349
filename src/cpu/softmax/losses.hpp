#pragma once

#include <cstdint>
#include <optional>

#include <speedo/backend/backend.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Losses that need no softmax; contracts as in Backend. The same sums with any number of threads.

Backend::LabelLoss hinge_loss(ThreadPool& pool, const Backend::HingeShape& shape,
                              const float* scores, const float* labels);
void hinge_loss_backward(ThreadPool& pool, const Backend::HingeShape& shape, const float* scores,
                         const float* labels, float scale, float* grad);

// Scores and what they are to be; of all elements, or from one on.
struct SigmoidTargets {
  const float* x;
  const float* target;
  std::optional<int> ignored;
};
Backend::SigmoidLoss sigmoid_loss(ThreadPool& pool, std::int64_t n, const SigmoidTargets& from);
// On the calling thread.
void sigmoid_loss_backward(std::int64_t n, const SigmoidTargets& from, float scale, float* grad);

}  // namespace speedo::cpu
