// The functions of UnaryKind and their slopes.

#include "gpu/elementwise/elementwise.hpp"

#include <algorithm>
#include <vector>

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

// Of so many gradients, which are in registers at once.
template <int kCount>
struct SumGradientsKernel {
  static constexpr const char* kName = "sum_gradients";
  UnaryOp op;
  std::int64_t n;
  ArrayFrom gradients[kCount];
  ArrayFrom y;  // null: no slope
  ArrayTo x_grad;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const auto plus = [](float a, float b) { return a + b; };
    const auto sloped = [&](float y_i, float g) { return slope_of(op, y_i, y_i) * g; };
    for_each_element(lane, n, x_grad.type, by_fours, [&](auto at) {
      auto sum = at.load(gradients[0]);
      for (int k = 1; k < kCount; ++k) sum = each(plus, sum, at.load(gradients[k]));
      if (!y.is_null()) sum = each(sloped, at.load(y), sum);
      at.store(x_grad, sum);
    });
  }
};

template <int kCount>
void sum_so_many(Queue& queue, const std::optional<UnaryOp>& f, Elements n,
                 std::span<const float* const> gradients, const SummedGradient& arrays) {
  SumGradientsKernel<kCount> kernel{.op = f.value_or(UnaryOp{}),
                                    .n = n.count,
                                    .gradients = {},
                                    .y = {f ? arrays.y : nullptr, n.type},
                                    .x_grad = {arrays.x_grad, n.type},
                                    .by_fours = true};
  for (std::size_t k = 0; k < kCount; ++k) {
    kernel.gradients[k] = {gradients[k], n.type};
    kernel.by_fours = kernel.by_fours && is_aligned(kernel.gradients[k]);
  }
  kernel.by_fours = kernel.by_fours && are_aligned(kernel.y, kernel.x_grad);
  launch(queue, grid_for(queue, n.count, 4), kernel);
}

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

// Four at once; what more there are are added to the sum of those, which the slope is for. Then no
// other one may be in the place of that sum.
void sum_gradients(Queue& queue, const std::optional<UnaryOp>& f, Elements n,
                   std::span<const float* const> gradients, const SummedGradient& arrays) {
  SPEEDO_ASSERT(!gradients.empty() && (!f || backward_reads(*f) == BackwardReads{false, true}));
  if (n.count == 0) return;
  constexpr std::size_t kMax = 4;
  const std::size_t in_place =
      std::ranges::find_if(gradients, [&](const float* each) { return each != arrays.x_grad; }) -
      gradients.begin();
  if (in_place > kMax) {
    map(queue, affine(static_cast<float>(in_place)), n, arrays.x_grad, arrays.x_grad);
    return sum_gradients(queue, f, n, gradients.subspan(in_place - 1), arrays);
  }
  if (gradients.size() > kMax) {
    sum_gradients(queue, std::nullopt, n, gradients.first(kMax), arrays);
    std::vector<const float*> rest(gradients.begin() + kMax - 1, gradients.end());
    rest[0] = arrays.x_grad;
    return sum_gradients(queue, f, n, rest, arrays);
  }
  switch (gradients.size()) {
    case 1:
      return sum_so_many<1>(queue, f, n, gradients, arrays);
    case 2:
      return sum_so_many<2>(queue, f, n, gradients, arrays);
    case 3:
      return sum_so_many<3>(queue, f, n, gradients, arrays);
    default:
      return sum_so_many<4>(queue, f, n, gradients, arrays);
  }
}

}  // namespace speedo::gpu
