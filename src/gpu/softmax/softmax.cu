#include "gpu/softmax/softmax.hpp"

#include <cmath>

#include "gpu/launch/launch.hpp"
#include "gpu/support/divisor.hpp"
#include "gpu/support/row_groups.hpp"

namespace speedo::gpu {
namespace {

struct Greater {
  SPEEDO_HOST_DEVICE double operator()(double a, double b) const { return b > a ? b : a; }
};

// The maximum of each row, the sum of its exponentials, their shares. A NaN is no maximum, but
// makes the sum and so the whole row NaN.
struct SoftmaxRowsKernel {
  static constexpr const char* kName = "softmax_rows";
  static constexpr int kSums = 1, kResults = 2;  // the maximum, one over the sum
  RowGroups groups;
  const float* x;
  float* y;

  SPEEDO_HOST_DEVICE int phases() const { return 3 + 2 * groups.fold_count(); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    const int folds = groups.fold_count();
    const std::int64_t first = groups.row(lane) * groups.columns();
    const bool has_row = groups.has_row(lane);
    double& highest = groups.result(lane, kSums, 0);
    double& share = groups.result(lane, kSums, 1);
    if (phase == 0) {
      float most = -HUGE_VALF;
      const auto compare = [&](std::int64_t i) {
        if (x[first + i] > most) most = x[first + i];
      };
      if (has_row) groups.for_each_column(lane, compare);
      groups.own(lane) = static_cast<double>(most);
    } else if (phase <= folds) {
      if (groups.fold_own(phase - 1, lane, Greater())) highest = groups.own(lane);
    } else if (phase == folds + 1) {
      double sum = 0.0;
      const auto most = static_cast<float>(highest);
      const auto add = [&](std::int64_t i) {
        sum += static_cast<double>(std::exp(x[first + i] - most));
      };
      if (has_row) groups.for_each_column(lane, add);
      groups.own(lane) = sum;
    } else if (phase <= 2 * folds + 1) {
      if (groups.fold_own(phase - folds - 2, lane, Plus())) share = 1.0 / groups.own(lane);
    } else if (has_row) {
      const auto most = static_cast<float>(highest), part = static_cast<float>(share);
      groups.for_each_column(
          lane, [&](std::int64_t i) { y[first + i] = std::exp(x[first + i] - most) * part; });
    }
  }
};

struct SoftmaxRowsBackwardKernel {
  static constexpr const char* kName = "softmax_rows_backward";
  RowGroups groups;
  const float* y;
  const float* y_grad;
  float* x_grad;

  SPEEDO_HOST_DEVICE int phases() const { return 2 + groups.fold_count(); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    const std::int64_t first = groups.row(lane) * groups.columns();
    const bool has_row = groups.has_row(lane);
    double& dot = groups.result(lane, 1);
    if (phase == 0) {
      double sum = 0.0;
      const auto add = [&](std::int64_t i) {
        sum += static_cast<double>(y[first + i]) * static_cast<double>(y_grad[first + i]);
      };
      if (has_row) groups.for_each_column(lane, add);
      groups.own(lane) = sum;
    } else if (phase <= groups.fold_count()) {
      if (groups.fold_own(phase - 1, lane, Plus())) dot = groups.own(lane);
    } else if (has_row) {
      const auto product = static_cast<float>(dot);
      groups.for_each_column(lane, [&](std::int64_t i) {
        x_grad[first + i] = (y_grad[first + i] - product) * y[first + i];
      });
    }
  }
};

// Classes lie `inner` floats apart: a thread has all classes of a position, and neighbouring
// threads neighbouring positions.
struct ClassColumns {
  std::int64_t positions, classes;
  Divisor inner;

  // Calls body(first class' index, what lies behind the last one) for the lane's positions.
  template <class Body>
  SPEEDO_HOST_DEVICE void for_each(const Lane& lane, const Body& body) const {
    for (std::int64_t p = lane.first(); p < positions; p += lane.stride()) {
      const std::int64_t outer = inner.quotient(p);
      const std::int64_t first = p + outer * (classes - 1) * inner.value();
      body(first, first + classes * inner.value());
    }
  }
};

struct SoftmaxColumnsKernel {
  static constexpr const char* kName = "softmax_columns";
  ClassColumns columns;
  const float* x;
  float* y;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    columns.for_each(lane, [&](std::int64_t first, std::int64_t end) {
      const std::int64_t step = columns.inner.value();
      float most = -HUGE_VALF, sum = 0.0F;
      for (std::int64_t i = first; i < end; i += step) most = x[i] > most ? x[i] : most;
      for (std::int64_t i = first; i < end; i += step) sum += std::exp(x[i] - most);
      const float share = 1.0F / sum;
      for (std::int64_t i = first; i < end; i += step) y[i] = std::exp(x[i] - most) * share;
    });
  }
};

struct SoftmaxColumnsBackwardKernel {
  static constexpr const char* kName = "softmax_columns_backward";
  ClassColumns columns;
  const float* y;
  const float* y_grad;
  float* x_grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    columns.for_each(lane, [&](std::int64_t first, std::int64_t end) {
      const std::int64_t step = columns.inner.value();
      float dot = 0.0F;
      for (std::int64_t i = first; i < end; i += step) dot += y[i] * y_grad[i];
      for (std::int64_t i = first; i < end; i += step) x_grad[i] = (y_grad[i] - dot) * y[i];
    });
  }
};

ClassColumns columns_of(const Backend::SoftmaxShape& shape) {
  return {shape.outer * shape.inner, shape.classes, Divisor(shape.inner)};
}

}  // namespace

void softmax_forward(Queue& queue, Backend::SoftmaxShape shape, const float* x, float* y) {
  if (shape.outer * shape.classes * shape.inner == 0) return;
  if (shape.inner == 1) {
    const RowGroups groups(shape.outer, shape.classes);
    launch(queue, groups.grid(SoftmaxRowsKernel::kSums, SoftmaxRowsKernel::kResults),
           SoftmaxRowsKernel{groups, x, y});
  } else {
    const ClassColumns columns = columns_of(shape);
    launch(queue, grid_for(queue, columns.positions), SoftmaxColumnsKernel{columns, x, y});
  }
}

void softmax_backward(Queue& queue, Backend::SoftmaxShape shape, const float* y,
                      const float* y_grad, float* x_grad) {
  if (shape.outer * shape.classes * shape.inner == 0) return;
  if (shape.inner == 1) {
    const RowGroups groups(shape.outer, shape.classes);
    launch(queue, groups.grid(1, 1), SoftmaxRowsBackwardKernel{groups, y, y_grad, x_grad});
  } else {
    const ClassColumns columns = columns_of(shape);
    launch(queue, grid_for(queue, columns.positions),
           SoftmaxColumnsBackwardKernel{columns, y, y_grad, x_grad});
  }
}

}  // namespace speedo::gpu
