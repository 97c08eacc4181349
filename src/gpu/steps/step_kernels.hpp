#pragma once

#include <cstdint>
#include <span>

#include <speedo/backend/device_steps.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// What DeviceSteps keeps in the device's memory, and the kernels that work on it, queued.
struct StepState {
  // SgdStep::guard: what rates are multiplied with, and whether nothing may change.
  float rate;
  float is_halted;
  float loss;  // of the step's passes so far, but for the one under way
  std::int32_t noted;  // steps
  double pass;         // the loss of the pass under way
  double is_finite;    // all gradients: 1, or 0
  float losses[DeviceSteps::kStepsMax];
};

void clear_steps(Queue& queue, StepState* state);
void set_rate(Queue& queue, float rate, StepState* state);
void keep_unless_halted(Queue& queue, const StepState* state,
                        std::span<const DeviceSteps::Kept> arrays);
void add_terms(Queue& queue, std::span<const DeviceSteps::Term> terms, StepState* state);
void next_pass(Queue& queue, StepState* state);
// `is_finite` of the state was written by what is queued before.
void note_step(Queue& queue, int passes, StepState* state);
void square_gradient(Queue& queue, std::int64_t n, const float* difference,
                     const DeviceSteps::SquareGradient& of, float* grad);
// value = float(*sum / normalizer).
void divide(Queue& queue, const double* sum, double normalizer, float* value);

}  // namespace speedo::gpu
