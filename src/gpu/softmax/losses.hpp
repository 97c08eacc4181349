#pragma once

#include <cstdint>
#include <optional>

#include <speedo/backend/backend.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// The losses of Backend, queued. What it waits for they leave in the device's memory.

// In that memory, not of the queue's scratch.
struct LossSums {
  double sum;              // void if there is a bad label; so is `valid`
  std::int64_t valid;      // how many were not ignored
  std::int64_t bad_index;  // of the first label that is none of the classes; -1: there is none
  double bad_label;        // a float
};

// What a gradient by a loss is multiplied with: a value, or the loss' weight by its normalizer,
// which both are on the device.
struct LossScale {
  float value = 0.0F;
  const float* weight = nullptr;  // null: the value
  const LossSums* sums = nullptr;
  double normalizer = 0.0;  // 0: as many labels as count, at least 1

  SPEEDO_HOST_DEVICE static double divisor(double normalizer, const LossSums& sums) {
    if (normalizer > 0.0) return normalizer;
    return sums.valid > 1 ? static_cast<double>(sums.valid) : 1.0;
  }
  SPEEDO_HOST_DEVICE float operator()() const {
    if (weight == nullptr) return value;
    return static_cast<float>(static_cast<double>(*weight) / divisor(normalizer, *sums));
  }
};

// value = the sum by the normalizer, as LossScale has it; NaN if there is a bad label.
void mean_loss(Queue& queue, const LossSums* sums, double normalizer, float* value);

// Labels, or targets of sigmoid_loss(), and one that is ignored, if there is.
struct LossLabels {
  const float* labels;
  std::optional<int> ignored = std::nullopt;
};

void softmax_loss(Queue& queue, Backend::SoftmaxShape shape, const float* probability,
                  const LossLabels& labels, LossSums* result);
void softmax_loss_backward(Queue& queue, Backend::SoftmaxShape shape, const float* probability,
                           const LossLabels& labels, const LossScale& scale, float* grad);

void hinge_loss(Queue& queue, const Backend::HingeShape& shape, const float* scores,
                const float* labels, LossSums* result);
void hinge_loss_backward(Queue& queue, const Backend::HingeShape& shape, const float* scores,
                         const float* labels, float scale, float* grad);

void sigmoid_loss(Queue& queue, std::int64_t n, const float* x, const LossLabels& targets,
                  LossSums* result);
void sigmoid_loss_backward(Queue& queue, std::int64_t n, const float* x, const LossLabels& targets,
                           const LossScale& scale, float* grad);

}  // namespace speedo::gpu
