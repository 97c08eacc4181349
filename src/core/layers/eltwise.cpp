#include "core/layers/eltwise.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<void> EltwiseLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().eltwise_param();
  switch (options.operation()) {
    case caffe::EltwiseParameter::PROD:
      operation_ = Operation::kProduct;
      break;
    case caffe::EltwiseParameter::SUM:
      operation_ = Operation::kSum;
      break;
    case caffe::EltwiseParameter::MAX:
      operation_ = Operation::kMaximum;
      break;
  }
  stable_product_ = options.stable_prod_grad();
  coefficients_.assign(options.coeff().begin(), options.coeff().end());
  if (coefficients_.empty()) coefficients_.assign(bottoms.size(), 1.0F);
  if (options.coeff_size() > 0 && operation_ != Operation::kSum) {
    return error("coeff goes with operation: SUM only");
  }
  if (coefficients_.size() != bottoms.size()) {
    return error(fmt::format("coeff is given {} times for {} bottoms; give it once per bottom",
                             coefficients_.size(), bottoms.size()));
  }
  return {};
}

Result<void> EltwiseLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& shape = bottoms[0]->shape();
  for (const Tensor* bottom : bottoms.subspan(1)) {
    if (bottom->shape() != shape) {
      return error(fmt::format("its bottoms must have one shape: {} and {}", to_string(shape),
                               to_string(bottom->shape())));
    }
  }
  tops[0]->reshape(shape);
  return {};
}

// A quotient of paddings is not zero.
LayoutRule EltwiseLayer::layout_rule() const {
  const bool divides = operation_ == Operation::kProduct && !stable_product_;
  return divides ? LayoutRule::kSameUnpadded : LayoutRule::kSame;
}

Result<void> EltwiseLayer::prepare(Tensors /*bottoms*/, Tensors tops, bool /*trains*/) {
  if (operation_ != Operation::kMaximum) return {};
  winner_.reshape({tops[0]->storage_count()});
  return allocate(winner_);
}

// A sum hands its gradient on as it is.
bool EltwiseLayer::gradients_may_share(int bottom, int /*top*/) const {
  return operation_ == Operation::kSum && coefficients_[static_cast<std::size_t>(bottom)] == 1.0F;
}

// Begins with the bottom that lies where the sum goes, if one does.
void EltwiseLayer::sum(Tensors bottoms, Tensor& top) {
  const std::int64_t count = top.storage_count();
  std::size_t first = 0;
  for (std::size_t i = 0; i < bottoms.size(); ++i) {
    if (bottoms[i]->data() == top.data()) first = i;
  }
  if (bottoms[first]->data() != top.data() || coefficients_[first] != 1.0F) {
    backend().axpby(count, coefficients_[first], bottoms[first]->data(), 0.0F, top.data());
  }
  for (std::size_t i = 0; i < bottoms.size(); ++i) {
    if (i != first) backend().axpby(count, coefficients_[i], bottoms[i]->data(), 1.0F, top.data());
  }
}

Result<void> EltwiseLayer::forward(Tensors bottoms, Tensors tops) {
  if (operation_ == Operation::kSum) {
    sum(bottoms, *tops[0]);
    return {};
  }
  const std::int64_t count = tops[0]->storage_count();
  const float* first = bottoms[0]->data();
  float* top = tops[0]->data();
  if (operation_ == Operation::kProduct) {
    backend().multiply(count, first, bottoms[1]->data(), top);
  } else {
    backend().max_forward(count, first, bottoms[1]->data(), true, 1.0F, winner_.data(), top);
  }
  for (std::size_t i = 2; i < bottoms.size(); ++i) {
    const float* bottom = bottoms[i]->data();
    if (operation_ == Operation::kProduct) {
      backend().multiply(count, top, bottom, top);
    } else {
      backend().max_forward(count, top, bottom, false, static_cast<float>(i), winner_.data(), top);
    }
  }
  return {};
}

// The product of the other bottoms is exact where this one is zero; top / bottom is not.
void EltwiseLayer::product_gradient(const Tensor& top, std::size_t index, Tensors bottoms) {
  const std::int64_t count = top.storage_count();
  float* grad = bottoms[index]->grad();
  if (!stable_product_) {
    backend().divide(count, top.data(), bottoms[index]->data(), grad);
    backend().multiply(count, grad, top.grad(), grad);
    return;
  }
  const float* factor = top.grad();
  for (std::size_t j = 0; j < bottoms.size(); ++j) {
    if (j == index) continue;
    backend().multiply(count, factor, bottoms[j]->data(), grad);
    factor = grad;
  }
}

void EltwiseLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  const std::int64_t count = tops[0]->storage_count();
  for (std::size_t i = 0; i < bottoms.size(); ++i) {
    if (!propagate[i]) continue;
    if (operation_ == Operation::kSum) {
      if (bottoms[i]->grad() == tops[0]->grad()) continue;
      backend().axpby(count, coefficients_[i], tops[0]->grad(), 0.0F, bottoms[i]->grad());
    } else if (operation_ == Operation::kProduct) {
      product_gradient(*tops[0], i, bottoms);
    } else {
      backend().max_backward(count, winner_.data(), static_cast<float>(i), tops[0]->grad(),
                             bottoms[i]->grad());
    }
  }
}

}  // namespace speedo
