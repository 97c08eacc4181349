#include <speedo/core/layer.hpp>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "caffe.pb.h"

namespace speedo {
namespace {

std::string bounds(int min, int max) {
  if (max < 0) return fmt::format("at least {}", min);
  if (min == max) return fmt::format("{}", min);
  return fmt::format("{} to {}", min, max);
}

bool within(std::size_t count, int min, int max) {
  const auto value = static_cast<long>(count);
  return value >= min && (max < 0 || value <= max);
}

}  // namespace

Layer::Layer(const caffe::LayerParameter& parameter)
    : message_(std::make_unique<caffe::LayerParameter>(parameter)),
      name_(parameter.name()),
      type_(parameter.type()) {
  message_->clear_blobs();  // Trained weights can be large, and the net loads them itself.
}

Layer::~Layer() = default;

Result<void> Layer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_ASSERT(context.backend != nullptr);
  context_ = context;
  requests_.clear();
  const LayerArity wanted = arity();
  if (!within(bottoms.size(), wanted.bottoms_min, wanted.bottoms_max)) {
    return error(fmt::format("takes {} bottom(s), the prototxt gives {}",
                             bounds(wanted.bottoms_min, wanted.bottoms_max), bottoms.size()));
  }
  if (!within(tops.size(), wanted.tops_min, wanted.tops_max)) {
    return error(fmt::format("makes {} top(s), the prototxt gives {}",
                             bounds(wanted.tops_min, wanted.tops_max), tops.size()));
  }
  if (wanted.equal_counts && bottoms.size() != tops.size()) {
    return error(fmt::format("needs as many tops as bottoms, the prototxt gives {} and {}",
                             tops.size(), bottoms.size()));
  }
  if (allows_in_place()) return {};
  for (const Tensor* top : tops) {
    for (const Tensor* bottom : bottoms) {
      if (top == bottom) {
        return error("cannot work in place; give its top a name of its own");
      }
    }
  }
  return {};
}

Result<void> Layer::give_arrays(std::span<const float> /*data*/,
                                std::span<const float> /*labels*/) {
  return error("takes no arrays; only a MemoryData layer does");
}

void Layer::bind_parameters(std::vector<Tensor*> parameters, std::vector<bool> needs_grad) {
  SPEEDO_ASSERT(parameters.size() == requests_.size());
  SPEEDO_ASSERT(needs_grad.size() == requests_.size());
  parameters_ = std::move(parameters);
  needs_grad_ = std::move(needs_grad);
}

void Layer::request_parameter(Shape shape, const caffe::FillerParameter* filler) {
  requests_.push_back({std::move(shape), filler});
}

void Layer::request_statistic(Shape shape) {
  requests_.push_back({std::move(shape), nullptr, true});
}

Result<void> Layer::allocate(Tensor& tensor) {
  if (context_.plan_only) return {};
  return tensor.allocate(backend(), false);
}

Error Layer::error(std::string what, ErrorCode code) const {
  return {code, fmt::format("layer '{}' ({}): {}", name_, type_, what)};
}

}  // namespace speedo
