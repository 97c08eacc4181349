#include "core/layers/inner_product.hpp"

#include <utility>

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {

Result<void> InnerProductLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().inner_product_param();
  if (options.num_output() == 0) return error("inner_product_param needs num_output > 0");
  outputs_ = options.num_output();
  has_bias_ = options.bias_term();
  transpose_ = options.transpose();
  auto axis = bottoms[0]->shape().canonical_axis(options.axis());
  if (!axis) return error(axis.error().message);
  axis_ = *axis;
  inputs_ = bottoms[0]->shape().count(axis_);
  if (inputs_ == 0) {
    return error(fmt::format("bottom {} is empty", to_string(bottoms[0]->shape())));
  }
  auto weights =
      transpose_ ? Shape::create({inputs_, outputs_}) : Shape::create({outputs_, inputs_});
  if (!weights) return error(weights.error().message);
  request_parameter(*weights, &options.weight_filler());
  if (has_bias_) request_parameter({outputs_}, &options.bias_filler());
  return {};
}

Result<void> InnerProductLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  const std::int64_t inputs = bottom.axes() >= axis_ ? bottom.count(axis_) : 0;
  if (inputs != inputs_) {
    return error(fmt::format("has weights for {} inputs, but its bottom ({}) gives {}", inputs_,
                             to_string(bottom), inputs));
  }
  rows_ = bottom.count(0, axis_);
  std::vector<std::int64_t> dims(bottom.dims().begin(), bottom.dims().begin() + axis_);
  dims.push_back(outputs_);
  auto top = Shape::create(std::move(dims));
  if (!top) return error(top.error().message);
  tops[0]->reshape(*top);
  return {};
}

OperationInfo InnerProductLayer::info() const {
  const double flops = 2.0 * static_cast<double>(rows_) * static_cast<double>(inputs_) *
                       static_cast<double>(outputs_);
  return {fmt::format("{} gemm", backend().name()), flops, 2.0 * flops, 0};
}

Result<void> InnerProductLayer::forward(Tensors bottoms, Tensors tops) {
  backend().gemm(
      {Op::kNone, transpose_ ? Op::kNone : Op::kTranspose, {rows_, outputs_, inputs_}, 1.0F, 0.0F},
      bottoms[0]->data(), parameter(0).data(), tops[0]->data());
  float* top = tops[0]->data();
  if (has_bias_) {
    backend().scale_channels(rows_view(), {nullptr, parameter(1).data(), activation_.op()}, top,
                             top);
  } else if (activation_.op()) {
    backend().map(*activation_.op(), rows_ * outputs_, top, top);
  }
  return {};
}

std::optional<FactorShape> InnerProductLayer::gradient_factors() const {
  if (!parameter_needs_grad(0) || rows_ == 0) return std::nullopt;
  FactorShape shape{.rows = rows_, .height = outputs_, .width = inputs_};
  if (transpose_) std::swap(shape.height, shape.width);
  if (shape.factor_count() > outputs_ * inputs_) return std::nullopt;
  return shape;
}

// The gradient of the weights as they lie is the product of the first array's transpose and the
// second.
void InnerProductLayer::add_weight_gradient(const float* top_grad, const float* bottom) {
  const float* const left = transpose_ ? bottom : top_grad;
  const float* const right = transpose_ ? top_grad : bottom;
  const std::int64_t height = transpose_ ? inputs_ : outputs_;
  const std::int64_t width = transpose_ ? outputs_ : inputs_;
  float* const gradient = parameter(0).grad();
  const float before = std::exchange(overwrites_, false) ? 0.0F : 1.0F;
  if (leaves_factors_) {
    backend().copy(rows_ * height, left, gradient);
    backend().copy(rows_ * width, right, gradient + rows_ * height);
    return;
  }
  backend().gemm({Op::kTranspose, Op::kNone, {height, width, rows_}, 1.0F, before}, left, right,
                 gradient);
}

void InnerProductLayer::backward(Tensors tops, const std::vector<bool>& propagate,
                                 Tensors bottoms) {
  const float* top_grad = tops[0]->grad();
  if (parameter_needs_grad(0)) add_weight_gradient(top_grad, bottoms[0]->data());
  if (has_bias_ && parameter_needs_grad(1)) {
    backend().sum_channels(rows_view(), nullptr, top_grad, nullptr, parameter(1).grad());
  }
  if (propagate[0]) {
    backend().gemm({Op::kNone,
                    transpose_ ? Op::kTranspose : Op::kNone,
                    {rows_, inputs_, outputs_},
                    1.0F,
                    0.0F},
                   top_grad, parameter(0).data(), bottoms[0]->grad());
  }
}

}  // namespace speedo
