#include "gpu/steps/step_kernels.hpp"

#include <cmath>

#include <speedo/base/assert.hpp>

#include "gpu/launch/launch.hpp"

namespace speedo::gpu {
namespace {

constexpr Grid kOneWarp{1, 32};

// Forgets what was noted, but not the rate.
struct ClearStepsKernel {
  static constexpr const char* kName = "clear_steps";
  StepState* state;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (lane.thread != 0) return;
    state->is_halted = 0.0F;
    state->loss = 0.0F;
    state->noted = 0;
    state->pass = 0.0;
  }
};

struct SetRateKernel {
  static constexpr const char* kName = "set_rate";
  StepState* state;
  float rate;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (lane.thread == 0) state->rate = rate;
  }
};

struct KeepKernel {
  static constexpr const char* kName = "keep_unless_halted";
  const StepState* state;
  std::int64_t n;
  const float* from;
  float* to;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (state->is_halted != 0.0F) return;
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) to[i] = from[i];
  }
};

// Terms beyond `count` are not looked at.
struct AddTermsKernel {
  static constexpr const char* kName = "add_loss_terms";
  StepState* state;
  const float* values[DeviceSteps::kTermsMax];
  float weights[DeviceSteps::kTermsMax];
  std::int64_t count;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (lane.thread != 0) return;
    double sum = 0.0;
    for (std::int64_t i = 0; i < count; ++i) {
      sum += static_cast<double>(weights[i]) * static_cast<double>(*values[i]);
    }
    state->pass += static_cast<double>(static_cast<float>(sum));
  }
};

struct NextPassKernel {
  static constexpr const char* kName = "next_pass";
  StepState* state;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (lane.thread != 0) return;
    state->loss += static_cast<float>(state->pass);
    state->pass = 0.0;
  }
};

struct NoteStepKernel {
  static constexpr const char* kName = "note_step";
  StepState* state;
  float passes;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (lane.thread != 0) return;
    const float sum = state->loss + static_cast<float>(state->pass);
    const float loss = state->is_finite != 0.0 ? sum / passes : NAN;
    state->loss = 0.0F;
    state->pass = 0.0;
    if (state->is_halted != 0.0F || state->noted >= DeviceSteps::kStepsMax) return;
    state->losses[state->noted] = loss;
    state->noted += 1;
    if (!(loss - loss == 0.0F)) state->is_halted = 1.0F;
  }
};

struct SquareGradientKernel {
  static constexpr const char* kName = "square_gradient";
  std::int64_t n;
  const float* difference;
  DeviceSteps::SquareGradient of;
  float* grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const float positive = *of.weight / of.divisor;
    const float scale = of.is_negative ? -positive : positive;
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      grad[i] = scale * difference[i];
    }
  }
};

struct DivideKernel {
  static constexpr const char* kName = "divide";
  const double* sum;
  double normalizer;
  float* value;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (lane.thread == 0) *value = static_cast<float>(*sum / normalizer);
  }
};

}  // namespace

void clear_steps(Queue& queue, StepState* state) {
  launch(queue, kOneWarp, ClearStepsKernel{state});
}

void set_rate(Queue& queue, float rate, StepState* state) {
  launch(queue, kOneWarp, SetRateKernel{state, rate});
}

void keep_unless_halted(Queue& queue, const StepState* state, std::int64_t n, const float* from,
                        float* to) {
  if (n == 0) return;
  launch(queue, grid_for(queue, n), KeepKernel{state, n, from, to});
}

void add_terms(Queue& queue, std::span<const DeviceSteps::Term> terms, StepState* state) {
  SPEEDO_ASSERT(terms.size() <= DeviceSteps::kTermsMax);
  AddTermsKernel kernel{state, {}, {}, static_cast<std::int64_t>(terms.size())};
  for (std::size_t i = 0; i < terms.size(); ++i) {
    kernel.values[i] = terms[i].value;
    kernel.weights[i] = terms[i].weight;
  }
  launch(queue, kOneWarp, kernel);
}

void next_pass(Queue& queue, StepState* state) { launch(queue, kOneWarp, NextPassKernel{state}); }

void note_step(Queue& queue, int passes, StepState* state) {
  launch(queue, kOneWarp, NoteStepKernel{state, static_cast<float>(passes)});
}

void square_gradient(Queue& queue, std::int64_t n, const float* difference,
                     const DeviceSteps::SquareGradient& of, float* grad) {
  if (n == 0) return;
  launch(queue, grid_for(queue, n), SquareGradientKernel{n, difference, of, grad});
}

void divide(Queue& queue, const double* sum, double normalizer, float* value) {
  launch(queue, kOneWarp, DivideKernel{sum, normalizer, value});
}

}  // namespace speedo::gpu
