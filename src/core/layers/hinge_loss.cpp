#include "core/layers/hinge_loss.hpp"

#include "caffe.pb.h"
#include "core/layers/bad_label.hpp"
#include "core/layers/support.hpp"

namespace speedo {

Result<void> HingeLossLayer::reshape(Tensors bottoms, Tensors tops) {
  SPEEDO_ASSIGN(const std::int64_t items, reshape_items(bottoms, tops));
  SPEEDO_TRY(check_some(bottoms));
  SPEEDO_TRY(check_label_count(bottoms, items));
  const bool squares =
      parameter_message().hinge_loss_param().norm() == caffe::HingeLossParameter::L2;
  shape_ = {items, bottoms[0]->shape().count(1), squares};
  return {};
}

Result<void> HingeLossLayer::forward(Tensors bottoms, Tensors tops) {
  const auto loss = backend().hinge_loss(shape_, bottoms[0]->data(), bottoms[1]->data());
  if (loss.bad_index >= 0) {
    return error(describe_bad_label(loss.bad_label, loss.bad_index, shape_.classes,
                                    LabelsIgnored::kNever),
                 ErrorCode::kData);
  }
  const double value = loss.sum / static_cast<double>(shape_.rows);
  put_value(backend(), static_cast<float>(value), tops[0]->data());
  return {};
}

void HingeLossLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  const float scale = get_value(backend(), tops[0]->grad()) / static_cast<float>(shape_.rows);
  backend().hinge_loss_backward(shape_, bottoms[0]->data(), bottoms[1]->data(), scale,
                                bottoms[0]->grad());
}

}  // namespace speedo
