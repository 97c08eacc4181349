#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "gpu/launch/launch.hpp"
#include "gpu/softmax/losses.hpp"
#include "gpu/support/fold.hpp"

namespace speedo::gpu {

// Losses are summed in two steps: each block sums its share, one block the sums of the blocks.

// A label that does not count, if there is one.
struct IgnoredLabel {
  float value = 0.0F;
  bool is_given = false;

  explicit IgnoredLabel(std::optional<int> asked)
      : value(static_cast<float>(asked.value_or(0))), is_given(asked.has_value()) {}
  SPEEDO_HOST_DEVICE bool operator()(float label) const {
    return is_given && std::trunc(label) == value;
  }
};

struct LossPart {
  static constexpr std::int64_t kNone = INT64_MAX;
  double sum = 0.0;
  std::int64_t valid = 0;
  std::int64_t bad_index = kNone;

  SPEEDO_HOST_DEVICE void find_bad(std::int64_t index) {
    if (index < bad_index) bad_index = index;
  }
};

struct MergeLossParts {
  SPEEDO_HOST_DEVICE LossPart operator()(LossPart a, const LossPart& b) const {
    a.sum += b.sum;
    a.valid += b.valid;
    a.find_bad(b.bad_index);
    return a;
  }
};

inline constexpr int kLossThreads = 256;
inline constexpr std::size_t kLossSharedBytes = kLossThreads * sizeof(LossPart);

// Terms: operator()(i, part) adds the i-th of n.
template <class Terms>
struct LossShareKernel {
  static constexpr const char* kName = Terms::kName;
  std::int64_t n;
  Terms terms;
  LossPart* parts;  // of each block

  SPEEDO_HOST_DEVICE int phases() const { return 1 + fold_phases(kLossThreads); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    auto* const shared = reinterpret_cast<LossPart*>(lane.shared);
    if (phase == 0) {
      LossPart part;
      for (std::int64_t i = lane.first(); i < n; i += lane.stride()) terms(i, part);
      shared[lane.thread] = part;
      return;
    }
    fold(phase - 1, kLossThreads, lane.thread, 1, shared, MergeLossParts());
    if (phase == phases() - 1 && lane.thread == 0) parts[lane.block] = shared[0];
  }
};

struct LossTotalKernel {
  static constexpr const char* kName = "loss_total";
  std::int64_t n;
  const LossPart* parts;
  const float* labels;
  LossSums* result;

  SPEEDO_HOST_DEVICE int phases() const { return 1 + fold_phases(kLossThreads); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    auto* const shared = reinterpret_cast<LossPart*>(lane.shared);
    if (phase == 0) {
      LossPart part;
      for (std::int64_t i = lane.thread; i < n; i += lane.threads) {
        part = MergeLossParts()(part, parts[i]);
      }
      shared[lane.thread] = part;
      return;
    }
    fold(phase - 1, kLossThreads, lane.thread, 1, shared, MergeLossParts());
    if (phase < phases() - 1 || lane.thread != 0) return;
    const bool is_bad = shared[0].bad_index != LossPart::kNone;
    result->sum = shared[0].sum;
    result->valid = shared[0].valid;
    result->bad_index = is_bad ? shared[0].bad_index : -1;
    result->bad_label = static_cast<double>(is_bad ? labels[shared[0].bad_index] : 0.0F);
  }
};

template <class Terms>
void sum_loss(Queue& queue, std::int64_t n, const Terms& terms, const float* labels,
              LossSums* result) {
  constexpr std::int64_t kBlocksMax = 1024, kPerThread = 4;
  Grid grid = grid_for(queue, std::max<std::int64_t>(n, 1), kPerThread);
  grid.blocks = std::min(grid.blocks, kBlocksMax);
  grid.shared_bytes = kLossSharedBytes;
  auto* const parts = queue.scratch<LossPart>(grid.blocks);
  launch(queue, grid, LossShareKernel<Terms>{n, terms, parts});
  launch(queue, Grid{1, kLossThreads, kLossSharedBytes},
         LossTotalKernel{grid.blocks, parts, labels, result});
}

}  // namespace speedo::gpu
