#include "core/layers/euclidean_loss.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "core/layers/support.hpp"

namespace speedo {

Result<void> EuclideanLossLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& a = bottoms[0]->shape();
  const Shape& b = bottoms[1]->shape();
  if (batch_size(a) != batch_size(b) || a.count() != b.count()) {
    return error(
        fmt::format("its bottoms must have the same first axis and count, they are {} "
                    "and {}",
                    to_string(a), to_string(b)));
  }
  if (a.count() == 0) return error(fmt::format("bottom {} is empty", to_string(a)));
  tops[0]->reshape({});
  difference_.reshape(a);
  return {};
}

Result<void> EuclideanLossLayer::prepare(Tensors /*bottoms*/, Tensors /*tops*/, bool /*trains*/) {
  SPEEDO_TRY(sums_.prepare(backend(), [this](Tensor& sums) { return allocate(sums); }));
  return allocate(difference_);
}

void EuclideanLossLayer::subtract(Tensors bottoms) {
  backend().zip({BinaryKind::kSum, 1.0F, -1.0F}, difference_.count(),
                {bottoms[0]->data(), bottoms[1]->data(), difference_.data()});
}

Result<void> EuclideanLossLayer::forward(Tensors bottoms, Tensors tops) {
  subtract(bottoms);
  const double squares =
      backend().reduce(ReduceOp::kSquareSum, difference_.count(), difference_.data(), nullptr);
  const double rows = static_cast<double>(batch_size(difference_.shape()));
  put_value(backend(), static_cast<float>(squares / rows / 2.0), tops[0]->data());
  return {};
}

void EuclideanLossLayer::backward(Tensors tops, const std::vector<bool>& propagate,
                                  Tensors bottoms) {
  const float scale =
      get_value(backend(), tops[0]->grad()) / static_cast<float>(batch_size(difference_.shape()));
  for (std::size_t i = 0; i < 2; ++i) {
    if (!propagate[i]) continue;
    const float sign = i == 0 ? 1.0F : -1.0F;
    backend().map(affine(sign * scale), difference_.count(), difference_.data(),
                  bottoms[i]->grad());
  }
}

// Division by 2 is exact: the quotients are those of forward().
Result<void> EuclideanLossLayer::queue_forward(DeviceSteps& steps, Tensors bottoms, Tensors tops) {
  subtract(bottoms);
  const auto rows = static_cast<double>(batch_size(difference_.shape()));
  steps.square_loss(difference_.count(), difference_.data(),
                    {.value = tops[0]->data(), .sums = sums_.data(), .normalizer = 2.0 * rows});
  return {};
}

void EuclideanLossLayer::queue_backward(DeviceSteps& steps, Tensors tops,
                                        const std::vector<bool>& propagate, Tensors bottoms) {
  const auto rows = static_cast<float>(batch_size(difference_.shape()));
  for (std::size_t i = 0; i < 2; ++i) {
    if (!propagate[i]) continue;
    steps.square_loss_backward(difference_.count(), difference_.data(),
                               {tops[0]->grad(), rows, i == 1}, bottoms[i]->grad());
  }
}

}  // namespace speedo
