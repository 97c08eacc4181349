// Solvers' update rules: each reads and writes all its arrays once. Ranges of them, of which a net
// has as many as parameters, most of them small, go into one kernel's arguments as a table.

#include "gpu/elementwise/elementwise.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "gpu/launch/launch.hpp"
#include "gpu/support/elements.hpp"
#include "gpu/support/multiply_add.hpp"

namespace speedo::gpu {
namespace {

// What becomes of an update: it is left where the gradient was, and taken from the weights too in a
// step.
struct UpdateArrays {
  const float* weights;
  float* grad;
  float* stepped;  // the weights, or null
};

SPEEDO_HOST_DEVICE UpdateArrays advanced(const UpdateArrays& arrays, std::int64_t at) {
  return {arrays.weights + at, arrays.grad + at,
          arrays.stepped == nullptr ? nullptr : arrays.stepped + at};
}

SPEEDO_HOST_DEVICE bool is_halted(const SgdStep& step) {
  return step.guard != nullptr && step.guard[1] != 0.0F;
}

SPEEDO_HOST_DEVICE float rate_of(const SgdStep& step) {
  return step.guard == nullptr ? step.rate : step.guard[0] * step.rate;
}

SPEEDO_HOST_DEVICE float decayed(MultiplyAdd multiply_add, const SgdStep& step, float weight,
                                 float grad) {
  const float l1 = weight > 0.0F ? step.l1 : (weight < 0.0F ? -step.l1 : 0.0F);
  return multiply_add(step.scale, grad, multiply_add(step.l2, weight, l1));
}

template <class Place, class Values>
SPEEDO_HOST_DEVICE void leave(Place at, const UpdateArrays& arrays, float sign, Values weight,
                              Values update) {
  const auto signed_by = [&](float u) { return sign * u; };
  at.store(arrays.grad, each(signed_by, update));
  if (arrays.stepped == nullptr) return;
  at.store(arrays.stepped, each([](float w, float u) { return w - u; }, weight, update));
}

// Rules: what a kernel does with the elements of a part of a range. Bit for bit what the CPU's
// loops do (cpu/elementwise/update_rules.cpp): replicas on both follow one another.

struct SgdRule {
  static constexpr const char* kName = "sgd";
  MultiplyAdd multiply_add;
  SgdStep step;
  UpdateArrays arrays;
  float* history;

  bool has_fours() const { return are_aligned(arrays.weights, arrays.grad, history); }
  SPEEDO_HOST_DEVICE const SgdStep& base() const { return step; }
  SPEEDO_HOST_DEVICE SgdRule part(const UpdateRange& range, std::int64_t at) const {
    return {multiply_add, step_of(step, range), advanced(arrays, at), history + at};
  }
  template <class Place>
  SPEEDO_HOST_DEVICE void operator()(Place at, float rate) const {
    const auto weight = at.load(arrays.weights);
    const auto next = [&](float w, float g, float h) {
      return multiply_add(step.momentum, h, rate * decayed(multiply_add, step, w, g));
    };
    const auto update = each(next, weight, at.load(arrays.grad), at.load(history));
    at.store(history, update);
    leave(at, arrays, step.sign, weight, update);
  }
};

SPEEDO_HOST_DEVICE float as_squares(float value) {
  return value > 0.0F ? (value < FLT_MAX ? value : FLT_MAX) : 0.0F;
}

struct AdaptiveRule {
  static constexpr const char* kName = "adaptive";
  MultiplyAdd multiply_add;
  AdaptiveStep step;
  UpdateArrays arrays;
  AdaptiveHistories histories;

  bool has_fours() const {
    return are_aligned(arrays.weights, arrays.grad, histories.first, histories.second);
  }
  SPEEDO_HOST_DEVICE const SgdStep& base() const { return step.base; }
  SPEEDO_HOST_DEVICE AdaptiveRule part(const UpdateRange& range, std::int64_t at) const {
    return {multiply_add, step_of(step, range), advanced(arrays, at), advanced(histories, at)};
  }
  template <class Place>
  SPEEDO_HOST_DEVICE void operator()(Place at, float rate) const {
    const auto weight = at.load(arrays.weights);
    const auto g = each([&](float w, float v) { return decayed(multiply_add, step.base, w, v); },
                        weight, at.load(arrays.grad));
    const auto first_before = at.load(histories.first);
    const auto first = each([&](float a, float v) { return first_of(a, v); }, first_before, g);
    at.store(histories.first, first);
    if (step.kind != AdaptiveKind::kAdaDelta && step.kind != AdaptiveKind::kAdam) {
      const auto update = each(
          [&](float a, float v) { return rate * (v / (std::sqrt(a) + step.delta)); }, first, g);
      leave(at, arrays, step.base.sign, weight, update);
      return;
    }
    const auto before = at.load(histories.second);
    const auto direction =
        each([&](float a, float b, float v) { return direction_of(a, b, v); }, first, before, g);
    at.store(histories.second,
             each([&](float b, float v, float u) { return second_of(b, v, u); }, before, g,
                  direction));
    const auto update = each([&](float u) { return rate * u; }, direction);
    leave(at, arrays, step.base.sign, weight, update);
  }

 private:
  // d a + (1 - d) x^2.
  SPEEDO_HOST_DEVICE float mean_square(float squares, float x) const {
    const float d = step.squares_decay;
    return as_squares(multiply_add(d, squares, (1.0F - d) * (x * x)));
  }
  SPEEDO_HOST_DEVICE float first_of(float a, float g) const {
    if (step.kind == AdaptiveKind::kAdaGrad) return as_squares(multiply_add(g, g, a));
    if (step.kind != AdaptiveKind::kAdam) return mean_square(a, g);
    return multiply_add(step.base.momentum, a, (1.0F - step.base.momentum) * g);
  }
  // Of the rules with two histories, from the first one as it is now and the second as it was.
  SPEEDO_HOST_DEVICE float direction_of(float a, float b, float g) const {
    if (step.kind == AdaptiveKind::kAdam) return a / (std::sqrt(mean_square(b, g)) + step.delta);
    return g * std::sqrt((as_squares(b) + step.delta) / (a + step.delta));
  }
  SPEEDO_HOST_DEVICE float second_of(float b, float g, float direction) const {
    if (step.kind == AdaptiveKind::kAdam) return mean_square(b, g);
    return mean_square(as_squares(b), direction);
  }
};

// Ranges are cut into pieces, of which each block does one or several.
template <class Rule>
struct UpdateKernel {
  static constexpr const char* kName = Rule::kName;
  static constexpr std::int64_t kPiece = 4096;
  static constexpr int kRangesMax = 96;
  struct Entry {
    UpdateRange range;
    std::int64_t pieces_before;
  };
  Rule rule;
  int count;
  bool by_fours;
  std::int64_t pieces;
  Entry table[kRangesMax];

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (is_halted(rule.base())) return;
    const Lane in_block{0, 1, lane.thread, lane.threads, nullptr};
    for (std::int64_t piece = lane.block; piece < pieces; piece += lane.blocks) {
      const Entry& entry = table[entry_of(piece)];
      const std::int64_t at = (piece - entry.pieces_before) * kPiece;
      const std::int64_t rest = entry.range.count - at;
      const Rule part = rule.part(entry.range, entry.range.first + at);
      const float rate = rate_of(part.base());
      for_each_element(in_block, rest < kPiece ? rest : kPiece, by_fours,
                       [&](auto place) { part(place, rate); });
    }
  }

 private:
  // The last one that begins with this piece or before it.
  SPEEDO_HOST_DEVICE int entry_of(std::int64_t piece) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (table[middle].pieces_before <= piece ? low : high) = middle;
    }
    return low;
  }
};

template <class Rule>
void update(Queue& queue, UpdateRanges ranges, const Rule& rule) {
  using Kernel = UpdateKernel<Rule>;
  std::size_t next = 0;
  while (next < ranges.size()) {
    Kernel kernel{rule, 0, rule.has_fours(), 0, {}};
    for (; next < ranges.size() && kernel.count < Kernel::kRangesMax; ++next) {
      const UpdateRange& range = ranges[next];
      if (range.count == 0) continue;
      kernel.table[kernel.count++] = {range, kernel.pieces};
      kernel.pieces += (range.count + Kernel::kPiece - 1) / Kernel::kPiece;
      kernel.by_fours = kernel.by_fours && range.first % 4 == 0;
    }
    if (kernel.count == 0) return;
    Grid grid;
    grid.blocks = std::min(kernel.pieces, queue.blocks_max);
    launch(queue, grid, kernel);
  }
}

}  // namespace

void sgd_update(Queue& queue, UpdateRanges ranges, const SgdStep& step, const float* weights,
                float* history, float* grad) {
  update(queue, ranges, SgdRule{{queue.fuses}, step, {weights, grad, nullptr}, history});
}
void sgd_step(Queue& queue, UpdateRanges ranges, const SgdStep& step, float* weights,
              float* history, float* grad) {
  update(queue, ranges, SgdRule{{queue.fuses}, step, {weights, grad, weights}, history});
}
void adaptive_update(Queue& queue, UpdateRanges ranges, const AdaptiveStep& step,
                     const float* weights, AdaptiveHistories histories, float* grad) {
  update(queue, ranges, AdaptiveRule{{queue.fuses}, step, {weights, grad, nullptr}, histories});
}
void adaptive_step(Queue& queue, UpdateRanges ranges, const AdaptiveStep& step, float* weights,
                   AdaptiveHistories histories, float* grad) {
  update(queue, ranges, AdaptiveRule{{queue.fuses}, step, {weights, grad, weights}, histories});
}

}  // namespace speedo::gpu
