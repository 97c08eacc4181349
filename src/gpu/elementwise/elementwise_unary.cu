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
  ArrayFrom x;
  ArrayTo y;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for_each_element(lane, n, x.type, by_fours, [&](auto at) {
      at.store(y, each([&](float v) { return mapped(op, v); }, at.load(x)));
    });
  }
};

struct MapBackwardKernel {
  static constexpr const char* kName = "map_backward";
  UnaryOp op;
  std::int64_t n;
  ArrayFrom x, y, y_grad;  // what is not read is y_grad
  ArrayTo x_grad;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for_each_element(lane, n, y_grad.type, by_fours, [&](auto at) {
      const auto grad = at.load(y_grad);
      const auto of_x = x.data == y_grad.data ? grad : at.load(x);
      const auto of_y = y.data == y_grad.data ? grad : at.load(y);
      const auto f = [&](float x_i, float y_i, float g) { return slope_of(op, x_i, y_i) * g; };
      at.store(x_grad, each(f, of_x, of_y, grad));
    });
  }
};

}  // namespace

void map(Queue& queue, const UnaryOp& op, Elements n, const float* x, float* y) {
  if (n.count == 0) return;
  const ArrayFrom from{x, n.type};
  const ArrayTo to{y, n.type};
  launch(queue, grid_for(queue, n.count, 4),
         MapKernel{op, n.count, from, to, are_aligned(from, to)});
}

void map_backward(Queue& queue, const UnaryOp& op, Elements n, const MapGradient& arrays) {
  if (n.count == 0) return;
  const BackwardReads reads = backward_reads(op);
  const ArrayFrom grad{arrays.y_grad, n.type};
  const ArrayFrom x = reads.src ? ArrayFrom{arrays.x, n.type} : grad;
  const ArrayFrom y = reads.dst ? ArrayFrom{arrays.y, n.type} : grad;
  const ArrayTo to{arrays.x_grad, n.type};
  launch(queue, grid_for(queue, n.count, 4),
         MapBackwardKernel{op, n.count, x, y, grad, to, are_aligned(x, y, grad, to)});
}

}  // namespace speedo::gpu
