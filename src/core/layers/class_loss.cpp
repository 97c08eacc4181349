#include "core/layers/class_loss.hpp"

#include "caffe.pb.h"

namespace speedo {

Result<void> ClassLossLayer::reshape_classes(int axis, Tensors bottoms, Tensors tops) {
  const Shape& scores = bottoms[0]->shape();
  const auto classes = scores.canonical_axis(axis);
  if (!classes) return error(classes.error().message);
  shape_ = {scores.count(0, *classes), scores[*classes], scores.count(*classes + 1)};
  SPEEDO_TRY(check_label_count(bottoms, shape_.outer * shape_.inner));
  SPEEDO_TRY(reshape_items(bottoms, tops));
  probability_.reshape(scores);
  shares_top_ = tops.size() > 1;
  if (shares_top_) {
    tops[1]->reshape(scores);
    probability_.share_data(*tops[1]);
  }
  return {};
}

Result<void> ClassLossLayer::prepare(Tensors /*bottoms*/, Tensors /*tops*/, bool /*trains*/) {
  SPEEDO_TRY(sums_.prepare(backend(), [this](Tensor& sums) { return allocate(sums); }));
  return shares_top_ ? Result<void>() : allocate(probability_);
}

QueuedLoss ClassLossLayer::queued_loss(Tensors tops) {
  return {.value = tops[0]->data(),
          .sums = sums_.data(),
          .weight = loss_gradient(*tops[0]),
          .normalizer =
              fixed_normalizer(parameter_message().loss_param(), DefaultNormalization::kValid,
                               {.outer = shape_.outer, .inner = shape_.inner})};
}

double ClassLossLayer::normalizer() const {
  return loss_normalizer(parameter_message().loss_param(), DefaultNormalization::kValid,
                         {shape_.outer, shape_.inner, valid_count_});
}

}  // namespace speedo
