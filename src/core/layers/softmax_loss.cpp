#include "core/layers/softmax_loss.hpp"

#include <fmt/format.h>

#include "caffe.pb.h"
#include "core/layers/bad_label.hpp"
#include "core/layers/loss_layer.hpp"
#include "core/layers/support.hpp"

namespace speedo {

Result<void> SoftmaxWithLossLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& scores = bottoms[0]->shape();
  const Shape& labels = bottoms[1]->shape();
  auto axis = scores.canonical_axis(parameter_message().softmax_param().axis());
  if (!axis) return error(axis.error().message);
  shape_ = {scores.count(0, *axis), scores[*axis], scores.count(*axis + 1)};
  if (labels.count() != shape_.outer * shape_.inner) {
    return error(fmt::format("scores of shape {} need {} labels, the label bottom has {}",
                             to_string(scores), shape_.outer * shape_.inner, labels.count()));
  }
  probability_.reshape(scores);
  tops[0]->reshape({});
  shares_top_ = tops.size() > 1;
  if (shares_top_) {
    tops[1]->reshape(scores);
    probability_.share_data(*tops[1]);
  }
  return {};
}

Result<void> SoftmaxWithLossLayer::prepare(Tensors /*bottoms*/, Tensors /*tops*/, bool /*trains*/) {
  return shares_top_ ? Result<void>() : allocate(probability_);
}

double SoftmaxWithLossLayer::normalizer() const {
  return loss_normalizer(parameter_message().loss_param(), DefaultNormalization::kValid,
                         {shape_.outer, shape_.inner, valid_count_});
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

}  // namespace speedo
