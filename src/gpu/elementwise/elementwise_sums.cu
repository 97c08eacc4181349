// Reductions in two steps: each block sums its share, one block the sums of the blocks.

#include "gpu/elementwise/elementwise.hpp"

#include <algorithm>

#include "gpu/launch/launch.hpp"
#include "gpu/support/elements.hpp"
#include "gpu/support/fold.hpp"

namespace speedo::gpu {
namespace {

constexpr std::int64_t kBlocksMax = 1024, kPerThread = 16;
constexpr int kThreads = 256;

struct ShareKernel {
  static constexpr const char* kName = "reduce";
  ReduceOp op;
  std::int64_t n;
  ArrayFrom x, y;  // y is x where it is not read
  double* sums;    // of each block
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1 + fold_phases(kThreads); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    auto* const shared = reinterpret_cast<double*>(lane.shared);
    if (phase == 0) {
      shared[lane.thread] = share(lane);
      return;
    }
    fold(phase - 1, kThreads, lane.thread, 1, shared, Plus());
    if (phase == phases() - 1 && lane.thread == 0) sums[lane.block] = shared[0];
  }

 private:
  SPEEDO_HOST_DEVICE double share(const Lane& lane) const {
    double sum = 0.0;
    const auto add = [&](float v, float w) {
      sum += term(v, w);
      return 0.0F;
    };
    for_each_element(lane, n, x.type, by_fours,
                     [&](auto at) { static_cast<void>(each(add, at.load(x), at.load(y))); });
    return sum;
  }
  SPEEDO_HOST_DEVICE double term(float v, float w) const {
    switch (op) {
      case ReduceOp::kSum:
        return static_cast<double>(v);
      case ReduceOp::kAbsSum:
        return static_cast<double>(v < 0.0F ? -v : v);
      case ReduceOp::kSquareSum:
      case ReduceOp::kDot:
        return static_cast<double>(v) * static_cast<double>(w);
      case ReduceOp::kAllFinite:
        return v - v == 0.0F ? 0.0 : 1.0;
    }
    return 0.0;
  }
};

struct SumOfSharesKernel {
  static constexpr const char* kName = "reduce_shares";
  bool counts_faults;  // the result is 1 where the sum is 0, else 0
  std::int64_t n;
  const double* sums;
  double* result;

  SPEEDO_HOST_DEVICE int phases() const { return 1 + fold_phases(kThreads); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    auto* const shared = reinterpret_cast<double*>(lane.shared);
    if (phase == 0) {
      double sum = 0.0;
      for (std::int64_t i = lane.thread; i < n; i += lane.threads) sum += sums[i];
      shared[lane.thread] = sum;
      return;
    }
    fold(phase - 1, kThreads, lane.thread, 1, shared, Plus());
    if (phase < phases() - 1 || lane.thread != 0) return;
    *result = counts_faults ? (shared[0] == 0.0 ? 1.0 : 0.0) : shared[0];
  }
};

}  // namespace

void reduce(Queue& queue, ReduceOp op, Elements n, const float* x, const float* y,
            double* result) {
  constexpr std::size_t kShared = kThreads * sizeof(double);
  Grid grid = grid_for(queue, std::max<std::int64_t>(n.count, 1), kPerThread);
  grid.blocks = std::min(grid.blocks, kBlocksMax);
  grid.shared_bytes = kShared;
  auto* const sums = queue.scratch<double>(grid.blocks);
  const ArrayFrom first{x, n.type}, second{op == ReduceOp::kDot ? y : x, n.type};
  launch(queue, grid,
         ShareKernel{op, n.count, first, second, sums, are_aligned(first, second)});
  launch(queue, Grid{1, kThreads, kShared},
         SumOfSharesKernel{op == ReduceOp::kAllFinite, grid.blocks, sums, result});
}

}  // namespace speedo::gpu
