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
  if (operation_ != Operation::kMaximum) return {};
  winner_.reshape(shape);
  return winner_.allocate(backend(), false);
}

Result<void> EltwiseLayer::forward(Tensors bottoms, Tensors tops) {
  const std::int64_t count = tops[0]->count();
  const float* first = bottoms[0]->data();
  float* top = tops[0]->data();
  if (operation_ == Operation::kSum) {
    backend().axpby(count, coefficients_[0], first, 0.0F, top);
  } else if (operation_ == Operation::kProduct) {
    backend().multiply(count, first, bottoms[1]->data(), top);
  } else {
    backend().max_forward(count, first, bottoms[1]->data(), true, 1.0F, winner_.data(), top);
  }
  const std::size_t done = operation_ == Operation::kSum ? 1 : 2;
  for (std::size_t i = done; i < bottoms.size(); ++i) {
    const float* bottom = bottoms[i]->data();
    if (operation_ == Operation::kSum) {
      backend().axpby(count, coefficients_[i], bottom, 1.0F, top);
    } else if (operation_ == Operation::kProduct) {
      backend().multiply(count, top, bottom, top);
    } else {
      backend().max_forward(count, top, bottom, false, static_cast<float>(i), winner_.data(), top);
    }
  }
  return {};
}

// The product of the other bottoms is exact where this one is zero; top / bottom is not.
void EltwiseLayer::product_gradient(const Tensor& top, std::size_t index, Tensors bottoms) {
  const std::int64_t count = top.count();
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
  const std::int64_t count = tops[0]->count();
  for (std::size_t i = 0; i < bottoms.size(); ++i) {
    if (!propagate[i]) continue;
    if (operation_ == Operation::kSum) {
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
