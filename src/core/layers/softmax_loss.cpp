#include "core/layers/softmax_loss.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "caffe.pb.h"
#include "core/layers/bad_label.hpp"
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

// Division by zero labels would turn a fully ignored batch into NaN, so the count is at least 1.
double SoftmaxWithLossLayer::normalizer() const {
  const auto& options = parameter_message().loss_param();
  auto mode = options.normalization();
  if (!options.has_normalization() && options.has_normalize()) {
    mode = options.normalize() ? caffe::LossParameter::VALID : caffe::LossParameter::BATCH_SIZE;
  }
  std::int64_t count = 1;
  if (mode == caffe::LossParameter::FULL) count = shape_.outer * shape_.inner;
  if (mode == caffe::LossParameter::VALID) count = valid_count_;
  if (mode == caffe::LossParameter::BATCH_SIZE) count = shape_.outer;
  return static_cast<double>(std::max<std::int64_t>(1, count));
}

std::optional<int> SoftmaxWithLossLayer::ignored_label() const {
  const auto& options = parameter_message().loss_param();
  return options.has_ignore_label() ? std::optional<int>(options.ignore_label()) : std::nullopt;
}

Result<void> SoftmaxWithLossLayer::forward(Tensors bottoms, Tensors tops) {
  backend().softmax_forward(shape_, bottoms[0]->data(), probability_.data());
  const Backend::SoftmaxLoss loss =
      backend().softmax_loss(shape_, probability_.data(), bottoms[1]->data(), ignored_label());
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
  backend().softmax_loss_backward(shape_, probability_.data(), bottoms[1]->data(), ignored_label(),
                                  static_cast<float>(weight / normalizer()), bottoms[0]->grad());
}

}  // namespace speedo
