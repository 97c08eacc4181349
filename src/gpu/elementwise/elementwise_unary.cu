// The functions of UnaryKind and their slopes.

#include "gpu/elementwise/elementwise.hpp"

#include "gpu/elementwise/unary_math.hpp"
#include "gpu/launch/launch.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {
namespace {

struct MapKernel {
  static constexpr const char* kName = "map";
  UnaryOp op;
  std::int64_t n;
  const float* x;
  float* y;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for_each_element(lane, n, by_fours, [&](auto at) {
      at.store(y, each([&](float v) { return mapped(op, v); }, at.load(x)));
    });
  }
};

struct MapBackwardKernel {
  static constexpr const char* kName = "map_backward";
  UnaryOp op;
  std::int64_t n;
  MapGradient arrays;  // what is not read is y_grad
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for_each_element(lane, n, by_fours, [&](auto at) {
      const auto grad = at.load(arrays.y_grad);
      const auto x = arrays.x == arrays.y_grad ? grad : at.load(arrays.x);
      const auto y = arrays.y == arrays.y_grad ? grad : at.load(arrays.y);
      const auto f = [&](float x_i, float y_i, float g) { return slope_of(op, x_i, y_i) * g; };
      at.store(arrays.x_grad, each(f, x, y, grad));
    });
  }
};

}  // namespace

void map(Queue& queue, const UnaryOp& op, std::int64_t n, const float* x, float* y) {
  if (n == 0) return;
  launch(queue, grid_for(queue, n, 4), MapKernel{op, n, x, y, are_aligned(x, y)});
}

void map_backward(Queue& queue, const UnaryOp& op, std::int64_t n, const MapGradient& arrays) {
  if (n == 0) return;
  const BackwardReads reads = backward_reads(op);
  MapGradient read = arrays;
  if (!reads.src) read.x = arrays.y_grad;
  if (!reads.dst) read.y = arrays.y_grad;
  launch(queue, grid_for(queue, n, 4),
         MapBackwardKernel{op, n, read, are_aligned(read.x, read.y, read.y_grad, read.x_grad)});
}

}  // namespace speedo::gpu
