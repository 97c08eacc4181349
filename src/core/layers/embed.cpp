#include "core/layers/embed.hpp"

#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/backend/labels.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<void> EmbedLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().embed_param();
  outputs_ = options.num_output();
  inputs_ = options.input_dim();
  has_bias_ = options.bias_term();
  if (outputs_ == 0) return error("embed_param needs num_output > 0");
  if (inputs_ == 0) return error("embed_param needs input_dim > 0, the count of numbers there are");
  auto weights = Shape::create({inputs_, outputs_});
  if (!weights) return error(weights.error().message);
  request_parameter(*weights, &options.weight_filler());
  if (has_bias_) request_parameter({outputs_}, &options.bias_filler());
  return {};
}

Result<void> EmbedLayer::reshape(Tensors bottoms, Tensors tops) {
  std::vector<std::int64_t> dims = bottoms[0]->shape().dims();
  dims.push_back(outputs_);
  auto top = Shape::create(std::move(dims));
  if (!top) return error(top.error().message);
  tops[0]->reshape(*top);
  return {};
}

Result<void> EmbedLayer::forward(Tensors bottoms, Tensors tops) {
  numbers_.resize(static_cast<std::size_t>(bottoms[0]->count()));
  backend().device().download(numbers_, bottoms[0]->data());
  rows_.clear();
  for (const float number : numbers_) {
    rows_.push_back(label_index(number, inputs_));
    if (rows_.back() < 0) {
      return error(fmt::format("number {:g} at index {} is outside 0..{}: set input_dim to more, "
                               "or correct the data",
                               number, rows_.size() - 1, inputs_ - 1),
                   ErrorCode::kData);
    }
  }
  const float* const weights = parameter(0).data();
  float* target = tops[0]->data();
  for (const std::int64_t row : rows_) {
    backend().copy(outputs_, weights + row * outputs_, target);
    target += outputs_;
  }
  if (has_bias_) {
    const ChannelView view{{bottoms[0]->count(), outputs_, 1}, {}};
    backend().scale_channels(view, {.beta = parameter(1).data()}, tops[0]->data(), tops[0]->data());
  }
  return {};
}

void EmbedLayer::backward(Tensors tops, const std::vector<bool>& /*propagate*/, Tensors bottoms) {
  const float* source = tops[0]->grad();
  if (parameter_needs_grad(0)) {
    for (const std::int64_t row : rows_) {
      float* const target = parameter(0).grad() + row * outputs_;
      backend().axpby(outputs_, 1.0F, source, 1.0F, target);
      source += outputs_;
    }
  }
  if (has_bias_ && parameter_needs_grad(1)) {
    const ChannelView view{{bottoms[0]->count(), outputs_, 1}, {}};
    backend().sum_channels(view, nullptr, tops[0]->grad(), nullptr, parameter(1).grad());
  }
}

}  // namespace speedo
