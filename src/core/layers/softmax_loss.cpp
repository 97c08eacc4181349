#include "core/layers/softmax_loss.hpp"

#include "caffe.pb.h"
#include "core/layers/bad_label.hpp"

namespace speedo {

Result<void> SoftmaxWithLossLayer::reshape(Tensors bottoms, Tensors tops) {
  return reshape_classes(parameter_message().softmax_param().axis(), bottoms, tops);
}

Result<void> SoftmaxWithLossLayer::forward(Tensors bottoms, Tensors tops) {
  backend().softmax_forward(shape_, bottoms[0]->data(), probability_.data());
  const auto ignored = ignored_label(parameter_message().loss_param());
  const Backend::LabelLoss loss =
      backend().softmax_loss(shape_, probability_.data(), bottoms[1]->data(), ignored);
  if (loss.bad_index >= 0) {
    return error(describe_bad_label(loss.bad_label, loss.bad_index, shape_.classes),
                 ErrorCode::kData);
  }
  valid_count_ = loss.valid;
  put_value(backend(), static_cast<float>(loss.sum / normalizer()), tops[0]->data());
  return {};
}

void SoftmaxWithLossLayer::backward(Tensors tops, const std::vector<bool>& propagate,
                                    Tensors bottoms) {
  if (!propagate[0]) return;
  const double weight = get_value(backend(), tops[0]->grad());
  const auto ignored = ignored_label(parameter_message().loss_param());
  backend().softmax_loss_backward(shape_, probability_.data(), bottoms[1]->data(), ignored,
                                  static_cast<float>(weight / normalizer()), bottoms[0]->grad());
}

DeviceSteps::Labelled SoftmaxWithLossLayer::labelled(Tensors bottoms) const {
  return {probability_.data(), bottoms[1]->data(), ignored_label(parameter_message().loss_param())};
}

Result<void> SoftmaxWithLossLayer::queue_forward(DeviceSteps& steps, Tensors bottoms,
                                                 Tensors tops) {
  backend().softmax_forward(shape_, bottoms[0]->data(), probability_.data());
  steps.softmax_loss({shape_.outer, shape_.classes, shape_.inner}, labelled(bottoms),
                     queued_loss(tops));
  return {};
}

void SoftmaxWithLossLayer::queue_backward(DeviceSteps& steps, Tensors tops,
                                          const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  steps.softmax_loss_backward({shape_.outer, shape_.classes, shape_.inner}, labelled(bottoms),
                              queued_loss(tops), bottoms[0]->grad());
}

}  // namespace speedo
