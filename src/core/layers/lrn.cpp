#include "core/layers/lrn.hpp"

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {

Result<void> LrnLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().lrn_param();
  const bool within = options.norm_region() == caffe::LRNParameter::WITHIN_CHANNEL;
  shape_.region = within ? LrnShape::Region::kWithin : LrnShape::Region::kAcross;
  shape_.size = options.local_size();
  shape_.alpha = options.alpha();
  shape_.beta = options.beta();
  shape_.k = options.k();
  if (shape_.size % 2 == 0) {
    return error(fmt::format("local_size is {}, it must be an odd number", shape_.size));
  }
  return {};
}

Result<void> LrnLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  if (bottom.axes() != 4) {
    return error(fmt::format("needs a bottom of 4 axes (N x C x H x W), it has {}: {}",
                             bottom.axes(), to_string(bottom)));
  }
  tops[0]->reshape(bottom);
  shape_.batch = bottom[0];
  shape_.channels = bottom[1];
  shape_.h = bottom[2];
  shape_.w = bottom[3];
  reads_ = backend().backward_reads(shape_);
  return {};
}

Result<void> LrnLayer::prepare(Tensors bottoms, Tensors /*tops*/, bool trains) {
  shape_.layout = bottoms[0]->layout();
  shape_.trains = trains;
  SPEEDO_ASSIGN(operation_, backend().make_lrn(shape_));
  return {};
}

Result<void> LrnLayer::forward(Tensors bottoms, Tensors tops) {
  operation_->forward(bottoms[0]->data(), tops[0]->data());
  return {};
}

void LrnLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  operation_->backward(bottoms[0]->data(), tops[0]->data(), tops[0]->grad(), bottoms[0]->grad());
}

}  // namespace speedo
