#include "core/layers/rnn.hpp"

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {
namespace {

constexpr UnaryOp kTanh{UnaryKind::kTanh};

}  // namespace

Result<void> RnnLayer::request_more() {
  const auto& options = parameter_message().recurrent_param();
  request_parameter({cells(), cells()}, &options.weight_filler());
  request_parameter({cells()}, &options.bias_filler());
  return {};
}

Result<void> RnnLayer::shape_unit() {
  for (Tensor* own : unit_memory()) {
    SPEEDO_TRY(shape_memory(*own, {steps(), streams(), cells()}));
  }
  return {};
}

double RnnLayer::unit_flops() const {
  return 2.0 * static_cast<double>(steps() * streams()) * static_cast<double>(cells() * cells());
}

float* RnnLayer::state(int /*index*/, std::int64_t t, Tensors /*tops*/) {
  return hidden_.data() + t * step_count();
}

void RnnLayer::step_forward(std::int64_t t, const float* /*cont*/, Tensors tops) {
  backend().map(kTanh, step_count(), sums(t), state(0, t, tops));
}

void RnnLayer::after_forward(Tensors tops) {
  const std::int64_t rows = steps() * streams();
  float* const top = tops[0]->data();
  backend().gemm({Op::kNone, Op::kTranspose, {rows, cells(), cells()}, 1.0F, 0.0F}, hidden_.data(),
                 parameter(parameter_count()).data(), top);
  backend().scale_channels({{rows, cells(), 1}, {}},
                           {nullptr, parameter(parameter_count() + 1).data(), kTanh}, top, top);
}

void RnnLayer::before_backward(Tensors tops) {
  const std::int64_t rows = steps() * streams();
  const int weights = parameter_count(), bias = weights + 1;
  float* const grad = output_grad_.data();
  backend().map_backward(kTanh, rows * cells(), nullptr, tops[0]->data(), tops[0]->grad(), grad);
  if (parameter_needs_grad(weights)) {
    backend().gemm({Op::kTranspose, Op::kNone, {cells(), cells(), rows}, 1.0F, 1.0F}, grad,
                   hidden_.data(), parameter(weights).grad());
  }
  if (parameter_needs_grad(bias)) {
    backend().sum_channels({{rows, cells(), 1}, {}}, nullptr, grad, nullptr,
                           parameter(bias).grad());
  }
  backend().gemm({Op::kNone, Op::kNone, {rows, cells(), cells()}, 1.0F, 0.0F}, grad,
                 parameter(weights).data(), hidden_grad_.data());
}

const float* RnnLayer::output_gradient(std::int64_t t, Tensors /*tops*/) {
  return hidden_grad_.data() + t * step_count();
}

void RnnLayer::step_backward(std::int64_t t, const float* h_grad, Tensors tops) {
  backend().map_backward(kTanh, step_count(), nullptr, state(0, t, tops), h_grad, sums(t));
}

}  // namespace speedo
