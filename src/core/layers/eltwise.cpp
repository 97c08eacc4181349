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
  // Caffe reads no coefficients for MAX, and takes nets that give them.
  if (options.coeff_size() > 0 && operation_ == Operation::kProduct) {
    return error("coeff does not go with operation: PROD; leave it out");
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

// One operation for each bottom but one; the last applies the activation.
void EltwiseLayer::combine(BinaryOp op, std::size_t bottom, const ZipArrays& arrays) {
  if (bottom + 1 == coefficients_.size()) op.activation = activation_.op();
  backend().zip(op, pass_, arrays);
}

// Begins with the bottom that lies where the sum goes, if one does.
void EltwiseLayer::sum(Tensors bottoms, float* top) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < bottoms.size(); ++i) {
    if (bottoms[i]->data() == top) first = i;
  }
  // The others in their order.
  const auto at = [&](std::size_t i) { return i == 0 ? first : (i <= first ? i - 1 : i); };
  const auto values = [&](std::size_t i) { return bottoms[at(i)]->data(); };
  combine({BinaryKind::kSum, coefficients_[at(0)], coefficients_[at(1)]}, 1,
          {values(0), values(1), top});
  for (std::size_t i = 2; i < bottoms.size(); ++i) {
    combine({BinaryKind::kSum, coefficients_[at(i)], 1.0F}, i, {values(i), top, top});
  }
}

void EltwiseLayer::product(Tensors bottoms, float* top) {
  const float* so_far = bottoms[0]->data();
  for (std::size_t i = 1; i < bottoms.size(); ++i) {
    combine({BinaryKind::kProduct}, i, {so_far, bottoms[i]->data(), top});
    so_far = top;
  }
}

// As in Caffe, a draw goes to the second bottom, and of the others to the one that was first.
void EltwiseLayer::maximum(Tensors bottoms, float* top) {
  constexpr float kKeep = -1.0F;
  combine({BinaryKind::kMaximum, 0.0F, 1.0F}, 1,
          {bottoms[0]->data(), bottoms[1]->data(), top, winner_.data()});
  for (std::size_t i = 2; i < bottoms.size(); ++i) {
    combine({BinaryKind::kMaximum, static_cast<float>(i), kKeep}, i,
            {bottoms[i]->data(), top, top, winner_.data()});
  }
}

Result<void> EltwiseLayer::forward(Tensors bottoms, Tensors tops) {
  pass_ = tops[0]->elements();
  float* top = tops[0]->data();
  switch (operation_) {
    case Operation::kSum:
      sum(bottoms, top);
      break;
    case Operation::kProduct:
      product(bottoms, top);
      break;
    case Operation::kMaximum:
      maximum(bottoms, top);
      break;
  }
  return {};
}

// The product of the other bottoms is exact where this one is zero; top / bottom is not.
void EltwiseLayer::product_gradient(const Tensor& top, std::size_t index, Tensors bottoms) {
  const Elements all = top.elements();
  float* grad = bottoms[index]->grad();
  if (!stable_product_) {
    backend().zip({BinaryKind::kQuotient}, all, {top.data(), bottoms[index]->data(), grad});
    backend().zip({BinaryKind::kProduct}, all, {grad, top.grad(), grad});
    return;
  }
  const float* factor = top.grad();
  for (std::size_t j = 0; j < bottoms.size(); ++j) {
    if (j == index) continue;
    backend().zip({BinaryKind::kProduct}, all, {factor, bottoms[j]->data(), grad});
    factor = grad;
  }
}

void EltwiseLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  const Elements all = tops[0]->elements();
  for (std::size_t i = 0; i < bottoms.size(); ++i) {
    if (!propagate[i]) continue;
    if (operation_ == Operation::kSum) {
      if (bottoms[i]->grad() == tops[0]->grad()) continue;
      backend().map(affine(coefficients_[i]), all, tops[0]->grad(), bottoms[i]->grad());
    } else if (operation_ == Operation::kProduct) {
      product_gradient(*tops[0], i, bottoms);
    } else {
      backend().zip({BinaryKind::kChosen, static_cast<float>(i)}, all,
                    {winner_.data(), tops[0]->grad(), bottoms[i]->grad()});
    }
  }
}

}  // namespace speedo
