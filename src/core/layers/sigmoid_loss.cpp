#include "core/layers/sigmoid_loss.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "core/layers/support.hpp"

namespace speedo {

Result<void> SigmoidLossLayer::reshape(Tensors bottoms, Tensors tops) {
  SPEEDO_ASSIGN(counts_.outer, reshape_items(bottoms, tops));
  counts_.inner = bottoms[0]->shape().count(1);
  if (bottoms[0]->count() == bottoms[1]->count()) return {};
  return error(fmt::format("needs a target for each score, the bottoms are {} and {}",
                           to_string(bottoms[0]->shape()), to_string(bottoms[1]->shape())));
}

Result<void> SigmoidLossLayer::forward(Tensors bottoms, Tensors tops) {
  const auto& options = parameter_message().loss_param();
  const auto loss = backend().sigmoid_loss(bottoms[0]->count(), bottoms[0]->data(),
                                           bottoms[1]->data(), ignored_label(options));
  counts_.valid = loss.valid;
  const double normalizer = loss_normalizer(options, DefaultNormalization::kBatchSize, counts_);
  put_value(backend(), static_cast<float>(loss.sum / normalizer), tops[0]->data());
  return {};
}

void SigmoidLossLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  const auto& options = parameter_message().loss_param();
  const double weight = get_value(backend(), tops[0]->grad());
  const double normalizer = loss_normalizer(options, DefaultNormalization::kBatchSize, counts_);
  backend().sigmoid_loss_backward(bottoms[0]->count(), bottoms[0]->data(), bottoms[1]->data(),
                                  ignored_label(options), static_cast<float>(weight / normalizer),
                                  bottoms[0]->grad());
}

Result<void> SigmoidLossLayer::prepare(Tensors /*bottoms*/, Tensors /*tops*/, bool /*trains*/) {
  return sums_.prepare(backend(), [this](Tensor& sums) { return allocate(sums); });
}

DeviceSteps::Labelled SigmoidLossLayer::labelled(Tensors bottoms) const {
  return {bottoms[0]->data(), bottoms[1]->data(), ignored_label(parameter_message().loss_param())};
}

QueuedLoss SigmoidLossLayer::queued_loss(Tensors tops) {
  return {.value = tops[0]->data(),
          .sums = sums_.data(),
          .weight = loss_gradient(*tops[0]),
          .normalizer = fixed_normalizer(parameter_message().loss_param(),
                                         DefaultNormalization::kBatchSize, counts_)};
}

Result<void> SigmoidLossLayer::queue_forward(DeviceSteps& steps, Tensors bottoms, Tensors tops) {
  steps.sigmoid_loss(bottoms[0]->count(), labelled(bottoms), queued_loss(tops));
  return {};
}

void SigmoidLossLayer::queue_backward(DeviceSteps& steps, Tensors tops,
                                      const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  steps.sigmoid_loss_backward(bottoms[0]->count(), labelled(bottoms), queued_loss(tops),
                              bottoms[0]->grad());
}

}  // namespace speedo
