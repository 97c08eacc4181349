#include "gpu/norm/row_norm.hpp"

#include <cmath>

#include "gpu/launch/launch.hpp"
#include "gpu/support/row_groups.hpp"

namespace speedo::gpu {
namespace {

struct ReduceRowsKernel {
  static constexpr const char* kName = "reduce_rows";
  RowGroups groups;
  ReduceOp op;
  double scale;
  const float* x;
  float* y;

  SPEEDO_HOST_DEVICE int phases() const { return 1 + groups.fold_count(); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    const std::int64_t row = groups.row(lane);
    if (phase == 0) {
      double sum = 0.0;
      const float* const from = x + row * groups.columns();
      if (groups.has_row(lane)) {
        groups.for_each_column(lane, [&](std::int64_t i) { sum += term(from[i]); });
      }
      groups.own(lane) = sum;
    } else if (groups.fold_own(phase - 1, lane, Plus()) && groups.has_row(lane)) {
      y[row] = static_cast<float>(scale * groups.own(lane));
    }
  }

 private:
  SPEEDO_HOST_DEVICE double term(float value) const {
    const auto v = static_cast<double>(value);
    if (op == ReduceOp::kSquareSum) return v * v;
    return op == ReduceOp::kAbsSum && v < 0.0 ? -v : v;
  }
};

// The mean, then the squares of the differences, then the differences.
struct NormalizeRowsKernel {
  static constexpr const char* kName = "normalize_rows";
  static constexpr int kSums = 1, kResults = 2;  // mean, deviation
  RowGroups groups;
  bool divides;
  double epsilon;
  const float* x;
  float* y;
  float* deviation;

  SPEEDO_HOST_DEVICE int phases() const { return 3 + 2 * groups.fold_count(); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    const int folds = groups.fold_count();
    const std::int64_t row = groups.row(lane), first = row * groups.columns();
    const bool has_row = groups.has_row(lane);
    double& mean = groups.result(lane, kSums, 0);
    double& divisor = groups.result(lane, kSums, 1);
    const auto count = static_cast<double>(groups.columns());
    if (phase == 0) {
      double sum = 0.0;
      const auto add = [&](std::int64_t i) { sum += static_cast<double>(x[first + i]); };
      if (has_row) groups.for_each_column(lane, add);
      groups.own(lane) = sum;
    } else if (phase <= folds) {
      if (groups.fold_own(phase - 1, lane, Plus())) mean = groups.own(lane) / count;
    } else if (phase == folds + 1) {
      double sum = 0.0;
      const auto add = [&](std::int64_t i) {
        const double difference = static_cast<double>(x[first + i]) - mean;
        sum += difference * difference;
      };
      if (has_row) groups.for_each_column(lane, add);
      groups.own(lane) = sum;
    } else if (phase <= 2 * folds + 1) {
      if (!groups.fold_own(phase - folds - 2, lane, Plus())) return;
      const double root = std::sqrt(groups.own(lane) / count) + epsilon;
      const float rounded = divides ? static_cast<float>(root) : 1.0F;
      divisor = static_cast<double>(rounded);
      if (has_row) deviation[row] = rounded;
    } else if (has_row) {
      groups.for_each_column(lane, [&](std::int64_t i) {
        y[first + i] = static_cast<float>((static_cast<double>(x[first + i]) - mean) / divisor);
      });
    }
  }
};

struct NormalizeRowsBackwardKernel {
  static constexpr const char* kName = "normalize_rows_backward";
  static constexpr int kSums = 2;  // of the gradient, and of it times y
  RowGroups groups;
  bool divides;
  RowNormGradient arrays;

  SPEEDO_HOST_DEVICE int phases() const { return 2 + groups.fold_count(); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    const int folds = groups.fold_count();
    const std::int64_t row = groups.row(lane), first = row * groups.columns();
    const auto count = static_cast<double>(groups.columns());
    if (phase == 0) {
      double sum = 0.0, product = 0.0;
      const auto add = [&](std::int64_t i) {
        const auto grad = static_cast<double>(arrays.y_grad[first + i]);
        sum += grad;
        if (divides) product += grad * static_cast<double>(arrays.y[first + i]);
      };
      if (groups.has_row(lane)) groups.for_each_column(lane, add);
      groups.own(lane, 0) = sum;
      groups.own(lane, 1) = product;
    } else if (phase <= folds) {
      groups.fold_own(phase - 1, lane, Plus(), 0);
      if (!groups.fold_own(phase - 1, lane, Plus(), 1)) return;
      groups.result(lane, kSums, 0) = groups.own(lane, 0) / count;
      groups.result(lane, kSums, 1) = groups.own(lane, 1) / count;
    } else if (groups.has_row(lane)) {
      const double mean = groups.result(lane, kSums, 0), product = groups.result(lane, kSums, 1);
      const double divisor = divides ? static_cast<double>(arrays.deviation[row]) : 1.0;
      groups.for_each_column(lane, [&](std::int64_t i) {
        const double part = divides ? static_cast<double>(arrays.y[first + i]) * product : 0.0;
        const double rest = static_cast<double>(arrays.y_grad[first + i]) - mean - part;
        arrays.x_grad[first + i] = static_cast<float>(rest / divisor);
      });
    }
  }
};

}  // namespace

void reduce_rows(Queue& queue, ReduceOp op, const Backend::RowsShape& shape, float scale,
                 const float* x, float* y) {
  if (shape.rows == 0) return;
  const RowGroups groups(shape.rows, shape.columns);
  launch(queue, groups.grid(1, 0), ReduceRowsKernel{groups, op, static_cast<double>(scale), x, y});
}

void normalize_rows(Queue& queue, const Backend::RowNorm& norm, const float* x, float* y,
                    float* deviation) {
  if (norm.shape.rows == 0) return;
  const RowGroups groups(norm.shape.rows, norm.shape.columns);
  const auto epsilon = static_cast<double>(norm.epsilon.value_or(0.0F));
  launch(queue, groups.grid(NormalizeRowsKernel::kSums, NormalizeRowsKernel::kResults),
         NormalizeRowsKernel{groups, norm.epsilon.has_value(), epsilon, x, y, deviation});
}

void normalize_rows_backward(Queue& queue, const Backend::RowNorm& norm,
                             const RowNormGradient& arrays) {
  if (norm.shape.rows == 0) return;
  const RowGroups groups(norm.shape.rows, norm.shape.columns);
  launch(queue, groups.grid(NormalizeRowsBackwardKernel::kSums, 2),
         NormalizeRowsBackwardKernel{groups, norm.epsilon.has_value(), arrays});
}

}  // namespace speedo::gpu
