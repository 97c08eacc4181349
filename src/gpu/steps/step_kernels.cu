#include "gpu/steps/step_kernels.hpp"

#include <algorithm>
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

// Of arrays beyond `count` nothing is looked at. Each of the others has as many blocks.
struct KeepKernel {
  static constexpr const char* kName = "keep_unless_halted";
  static constexpr std::size_t kArraysMax = 160;
  const StepState* state;
  std::int64_t count, shares;
  DeviceSteps::Kept arrays[kArraysMax];

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (state->is_halted != 0.0F) return;
    for (std::int64_t part = lane.block; part < count * shares; part += lane.blocks) {
      const DeviceSteps::Kept& array = arrays[part / shares];
      const std::int64_t first = part % shares * lane.threads + lane.thread;
      for (std::int64_t i = first; i < array.n; i += shares * lane.threads) {
        array.to[i] = array.from[i];
      }
    }
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

void keep_unless_halted(Queue& queue, const StepState* state,
                        std::span<const DeviceSteps::Kept> arrays) {
  constexpr std::int64_t kPerThread = 4, kSharesMax = 64;
  while (!arrays.empty()) {
    const std::size_t count = std::min(arrays.size(), KeepKernel::kArraysMax);
    KeepKernel kernel{state, static_cast<std::int64_t>(count), 1, {}};
    for (std::size_t i = 0; i < count; ++i) {
      kernel.arrays[i] = arrays[i];
      const Grid grid = grid_for(std::max<std::int64_t>(arrays[i].n, 1), kPerThread, kSharesMax);
      kernel.shares = std::max(kernel.shares, grid.blocks);
    }
    Grid grid;
    grid.blocks = std::min(kernel.count * kernel.shares, queue.blocks_max);
    launch(queue, grid, kernel);
    arrays = arrays.subspan(count);
  }
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
