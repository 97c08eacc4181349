#include "core/layers/power.hpp"

#include <cmath>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "core/layers/support.hpp"

namespace speedo {

Result<void> PowerLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().power_param();
  power_ = options.power();
  scale_ = options.scale();
  shift_ = options.shift();
  return {};
}

// Padding stays zero where 0 gives 0, and its gradient where the slope at 0 is finite.
LayoutRule PowerLayer::layout_rule() const {
  return shift_ == 0.0F && power_ >= 1.0F ? LayoutRule::kSame : LayoutRule::kSameUnpadded;
}

Result<void> PowerLayer::reshape(Tensors bottoms, Tensors tops) {
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottoms[0]->shape());
  return {};
}

Result<void> PowerLayer::prepare(Tensors bottoms, Tensors tops, bool trains) {
  keeps_slope_ = trains && tops[0] == bottoms[0] && !is_linear();
  if (!keeps_slope_) return {};
  slope_.reshape({bottoms[0]->storage_count()});
  return allocate(slope_);
}

std::int64_t PowerLayer::workspace_bytes() const { return keeps_slope_ ? bytes_of(slope_) : 0; }

// y = (shift + scale x) ^ exponent. y may equal x.
void PowerLayer::compute(std::int64_t count, const float* x, float exponent, float* y) {
  backend().axpby(count, scale_, x, 0.0F, y);
  if (shift_ != 0.0F) backend().add_scalar(count, shift_, y);
  if (exponent == 2.0F) {
    backend().square(count, y, y);
  } else if (exponent != 1.0F) {
    backend().power(count, y, exponent, y);
  }
}

void PowerLayer::compute_slope(std::int64_t count, const float* x, float* slope) {
  compute(count, x, power_ - 1.0F, slope);
  backend().axpby(count, factor(), slope, 0.0F, slope);
}

Result<void> PowerLayer::forward(Tensors bottoms, Tensors tops) {
  const std::int64_t count = bottoms[0]->storage_count();
  if (factor() == 0.0F) {
    const float value = power_ == 0.0F ? 1.0F : std::pow(shift_, power_);
    backend().fill(count, value, tops[0]->data());
    return {};
  }
  if (keeps_slope_) compute_slope(count, bottoms[0]->data(), slope_.data());
  compute(count, bottoms[0]->data(), power_, tops[0]->data());
  return {};
}

void PowerLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  const std::int64_t count = bottoms[0]->storage_count();
  float* grad = bottoms[0]->grad();
  if (factor() == 0.0F) {
    backend().fill(count, 0.0F, grad);
  } else if (is_linear()) {
    backend().axpby(count, scale_, tops[0]->grad(), 0.0F, grad);
  } else if (keeps_slope_) {
    backend().multiply(count, slope_.data(), tops[0]->grad(), grad);
  } else {
    compute_slope(count, bottoms[0]->data(), grad);
    backend().multiply(count, grad, tops[0]->grad(), grad);
  }
}

}  // namespace speedo
