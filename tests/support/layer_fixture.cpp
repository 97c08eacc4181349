#include "support/layer_fixture.hpp"

#include <google/protobuf/text_format.h>

#include "caffe.pb.h"
#include "core/layers/registry.hpp"
#include "support/catch.hpp"

namespace speedo {

LayerFixture::LayerFixture(const std::string& text, std::unique_ptr<Backend> backend, Phase phase)
    : text_("name: 'it' " + text), backend_(std::move(backend)) {
  context_.backend = backend_.get();
  context_.phase = phase;
  context_.random = &random_;
}

Result<void> LayerFixture::build(const std::vector<Shape>& bottoms, int tops, bool in_place) {
  caffe::LayerParameter message;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text_, &message));
  SPEEDO_ASSIGN(layer_, make_layer(message));
  for (const Shape& shape : bottoms) {
    bottoms_.push_back(owned_.emplace_back(std::make_unique<Tensor>(shape)).get());
  }
  for (int i = 0; i < tops; ++i) {
    const bool shared = in_place && i == 0;
    tops_.push_back(shared ? bottoms_[0] : owned_.emplace_back(std::make_unique<Tensor>()).get());
  }
  SPEEDO_TRY(layer_->setup(context_, bottoms_, tops_));
  for (std::size_t i = 0; i < bottoms_.size(); ++i) {
    propagate.push_back(layer_->can_propagate(static_cast<int>(i)));
  }
  SPEEDO_TRY(layer_->reshape(bottoms_, tops_));
  SPEEDO_TRY(build_parameters());
  return prepare();
}

Result<void> LayerFixture::reshape(const std::vector<Shape>& bottoms) {
  REQUIRE(bottoms.size() == bottoms_.size());
  for (std::size_t i = 0; i < bottoms.size(); ++i) bottoms_[i]->reshape(bottoms[i]);
  SPEEDO_TRY(layer_->reshape(bottoms_, tops_));
  return prepare();
}

Result<void> LayerFixture::prepare() {
  SPEEDO_TRY(layer_->prepare(bottoms_, tops_, true));
  for (const auto& tensor : owned_) SPEEDO_TRY(tensor->allocate(*backend_));
  return {};
}

Result<void> LayerFixture::build_parameters() {
  for (const ParameterRequest& request : layer_->parameter_requests()) {
    auto& tensor = owned_.emplace_back(std::make_unique<Tensor>(request.shape));
    SPEEDO_TRY(tensor->allocate(*backend_));
    parameters_.push_back(tensor.get());
  }
  layer_->bind_parameters(parameters_, std::vector<bool>(parameters_.size(), true));
  return {};
}

Result<void> LayerFixture::forward() {
  random_ = Random(1701);
  return layer_->forward(bottoms_, tops_);
}

void LayerFixture::backward() { layer_->backward(tops_, propagate, bottoms_); }

void LayerFixture::set_bottom(std::size_t index, const std::vector<float>& values) {
  REQUIRE(static_cast<std::int64_t>(values.size()) == bottoms_[index]->count());
  backend_->device().upload(bottoms_[index]->data(), values);
}

std::vector<float> LayerFixture::top_values(std::size_t index) const {
  return tops_[index]->values(*backend_);
}

}  // namespace speedo
