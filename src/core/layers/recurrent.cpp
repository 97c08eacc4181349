#include "core/layers/recurrent.hpp"

#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "core/layers/support.hpp"

namespace speedo {

LayerArity RecurrentLayer::arity() const {
  const bool exposes = parameter_message().recurrent_param().expose_hidden();
  const int states = exposes ? state_count() : 0;
  return {2 + states, 3 + states, 1 + states, 1 + states};
}

Result<void> RecurrentLayer::read_sizes(Tensors bottoms) {
  const auto& options = parameter_message().recurrent_param();
  const Shape& x = bottoms[kX]->shape();
  if (x.axes() < 3) {
    return error(fmt::format("bottom 0 must be steps x streams x values, 3 axes or more, it is {}",
                             to_string(x)));
  }
  if (options.num_output() == 0) return error("recurrent_param needs num_output > 0");
  exposes_ = options.expose_hidden();
  has_static_ = bottoms.size() > static_cast<std::size_t>(exposes_ ? 2 + state_count() : 2);
  steps_ = x[0];
  cells_ = options.num_output();
  width_ = sums_per_cell() * cells_;
  inputs_ = x.count(2);
  if (steps_ == 0 || inputs_ == 0) return error(fmt::format("bottom 0 {} is empty", to_string(x)));
  if (!has_static_) return {};
  const Shape& constant = bottoms[kStatic]->shape();
  if (constant.axes() < 2 || constant.count(1) == 0) {
    return error(fmt::format("bottom 2 must be streams x values, 2 axes or more, it is {}",
                             to_string(constant)));
  }
  static_inputs_ = constant.count(1);
  return {};
}

Result<void> RecurrentLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  SPEEDO_TRY(read_sizes(bottoms));
  const auto& options = parameter_message().recurrent_param();
  const auto request = [&](std::int64_t columns) -> Result<void> {
    auto shape = Shape::create({width_, columns});
    if (!shape) return error(shape.error().message);
    request_parameter(*shape, &options.weight_filler());
    return {};
  };
  SPEEDO_TRY(request(inputs_));
  request_parameter({width_}, &options.bias_filler());
  if (has_static_) SPEEDO_TRY(request(static_inputs_));
  SPEEDO_TRY(request(cells_));
  return request_more();
}

Result<void> RecurrentLayer::check_bottoms(Tensors bottoms) const {
  const Shape& x = bottoms[kX]->shape();
  if (x.axes() < 3 || x.count(2) != inputs_) {
    return error(fmt::format("has weights for {} values of a step and stream, its bottom is {}",
                             inputs_, to_string(x)));
  }
  if (x[0] != steps_) {
    return error(fmt::format("was set up for {} steps, its bottom {} has {}; their number cannot "
                             "change, that of the streams can",
                             steps_, to_string(x), x[0]));
  }
  const Shape cont{steps_, x[1]};
  if (bottoms[kCont]->shape() != cont) {
    return error(
        fmt::format("bottom 1 must have one value for each step and stream of bottom 0, {}, it is "
                    "{}",
                    to_string(cont), to_string(bottoms[kCont]->shape())));
  }
  if (has_static_) {
    const Shape& constant = bottoms[kStatic]->shape();
    if (constant.axes() < 2 || constant[0] != x[1] || constant.count(1) != static_inputs_) {
      return error(fmt::format("bottom 2 must have {} values for each of the {} streams, it is {}",
                               static_inputs_, x[1], to_string(constant)));
    }
  }
  const Shape state{1, x[1], cells_};
  for (std::size_t i = static_cast<std::size_t>(first_exposed()); i < bottoms.size(); ++i) {
    if (bottoms[i]->shape() == state) continue;
    return error(fmt::format("bottom {} is a state and must be {}, it is {}", i, to_string(state),
                             to_string(bottoms[i]->shape())));
  }
  return {};
}

Result<void> RecurrentLayer::shape_memory(Tensor& tensor, std::vector<std::int64_t> dims) const {
  auto shape = Shape::create(std::move(dims));
  if (!shape) return error(shape.error().message + "; take fewer steps or streams at once");
  tensor.reshape(*shape);
  return {};
}

Result<void> RecurrentLayer::reshape(Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(check_bottoms(bottoms));
  streams_ = bottoms[kX]->shape()[1];
  SPEEDO_TRY(shape_memory(*tops[0], {steps_, streams_, cells_}));
  for (Tensor* top : tops.subspan(1)) top->reshape({1, streams_, cells_});
  SPEEDO_TRY(shape_memory(sums_, {steps_, streams_, width_}));
  SPEEDO_TRY(shape_memory(conted_, {steps_, streams_, cells_}));
  SPEEDO_TRY(shape_memory(constants_, {has_static_ ? streams_ : 0, width_}));
  // Where the number of streams changes they keep the memory that they have, as in Caffe.
  carried_.resize(exposes_ ? 0 : static_cast<std::size_t>(state_count()));
  for (Tensor& state : carried_) state.reshape({1, streams_, cells_});
  return shape_unit();
}

std::vector<Tensor*> RecurrentLayer::own_memory() {
  std::vector<Tensor*> all = unit_memory();
  for (Tensor* own : {&sums_, &conted_, &constants_, &h_grad_, &conted_grad_}) {
    all.push_back(own);
  }
  for (Tensor& state : carried_) all.push_back(&state);
  return all;
}

Result<void> RecurrentLayer::prepare(Tensors /*bottoms*/, Tensors /*tops*/, bool trains) {
  for (Tensor* gradient : {&h_grad_, &conted_grad_}) {
    gradient->reshape({trains ? streams_ : 0, cells_});
  }
  workspace_bytes_ = 0;
  for (Tensor* own : own_memory()) {
    workspace_bytes_ += bytes_of(*own);
    auto provided = allocate(*own);
    if (!provided) return error(provided.error().message, provided.error().code);
  }
  return {};
}

bool RecurrentLayer::backward_reads_bottom(int bottom) const {
  if (bottom == kX) return parameter_needs_grad(kWeights);
  if (bottom == kCont) return true;
  return has_static_ && bottom == kStatic && parameter_needs_grad(kStaticWeights);
}

OperationInfo RecurrentLayer::info() const {
  const auto values = static_cast<double>(inputs_ + cells_);
  const auto rows = static_cast<double>(steps_ * streams_);
  const double constant = static_cast<double>(streams_) * static_cast<double>(static_inputs_);
  const double flops =
      2.0 * static_cast<double>(width_) * (rows * values + constant) + unit_flops();
  return {fmt::format("{} gemm", backend().name()), flops, 2.0 * flops, 0};
}

const float* RecurrentLayer::state_before(int index, Tensors bottoms) {
  if (!exposes_) return carried_[static_cast<std::size_t>(index)].data();
  return bottoms[static_cast<std::size_t>(first_exposed() + index)]->data();
}

void RecurrentLayer::keep_states(Tensors tops) {
  for (int i = 0; i < state_count(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    Tensor& kept = exposes_ ? *tops[index + 1] : carried_[index];
    backend().copy(step_count(), state(i, steps_ - 1, tops), kept.data());
  }
}

// The sums of all steps, what is added to each of them aside.
void RecurrentLayer::multiply_x(Tensors bottoms) {
  backend().gemm(
      {Op::kNone, Op::kTranspose, {steps_ * streams_, width_, inputs_}, 1.0F, 0.0F},
      bottoms[kX]->data(), parameter(kWeights).data(), sums_.data());
  if (!has_static_) return;
  backend().gemm({Op::kNone, Op::kTranspose, {streams_, width_, static_inputs_}, 1.0F, 0.0F},
                 bottoms[kStatic]->data(), parameter(kStaticWeights).data(), constants_.data());
  backend().scale_channels({{streams_, width_, 1}, {}}, {nullptr, parameter(kBias).data()},
                           constants_.data(), constants_.data());
}

void RecurrentLayer::add_constants(std::int64_t t) {
  float* const all = sums(t);
  if (has_static_) {
    backend().zip({BinaryKind::kSum}, streams_ * width_, {all, constants_.data(), all});
  } else {
    backend().scale_channels({{streams_, width_, 1}, {}}, {nullptr, parameter(kBias).data()}, all,
                             all);
  }
}

void RecurrentLayer::multiply_streams(const float* cont, const float* from, float* to) {
  backend().scale_channels({{1, streams_, cells_}, {}}, {cont, nullptr}, from, to);
}

Result<void> RecurrentLayer::forward(Tensors bottoms, Tensors tops) {
  multiply_x(bottoms);
  for (int i = 1; i < state_count(); ++i) {
    backend().copy(step_count(), state_before(i, bottoms), state(i, -1, tops));
  }
  const float* h_before = state_before(0, bottoms);
  for (std::int64_t t = 0; t < steps_; ++t) {
    const float* const cont = bottoms[kCont]->data() + t * streams_;
    float* const conted = conted_.data() + t * step_count();
    multiply_streams(cont, h_before, conted);
    add_constants(t);
    backend().gemm({Op::kNone, Op::kTranspose, {streams_, width_, cells_}, 1.0F, 1.0F}, conted,
                   parameter(hidden_weights()).data(), sums(t));
    step_forward(t, cont, tops);
    h_before = state(0, t, tops);
  }
  keep_states(tops);
  after_forward(tops);
  return {};
}

void RecurrentLayer::add_product(int index, std::int64_t rows, const float* grad,
                                 const float* values) {
  if (!parameter_needs_grad(index)) return;
  Tensor& weights = parameter(index);
  backend().gemm(
      {Op::kTranspose, Op::kNone, {weights.shape()[0], weights.shape()[1], rows}, 1.0F, 1.0F},
      grad, values, weights.grad());
}

void RecurrentLayer::add_gradients(Tensors bottoms) {
  const std::int64_t rows = steps_ * streams_;
  add_product(kWeights, rows, sums_.data(), bottoms[kX]->data());
  add_product(hidden_weights(), rows, sums_.data(), conted_.data());
  if (parameter_needs_grad(kBias)) {
    backend().sum_channels({{rows, width_, 1}, {}}, nullptr, sums_.data(), nullptr,
                           parameter(kBias).grad());
  }
  if (!has_static_) return;
  backend().fill(streams_ * width_, 0.0F, constants_.data());
  backend().sum_channels({{steps_, streams_ * width_, 1}, {}}, nullptr, sums_.data(), nullptr,
                         constants_.data());
  add_product(kStaticWeights, streams_, constants_.data(), bottoms[kStatic]->data());
}

void RecurrentLayer::make_bottom_gradients(const std::vector<bool>& propagate, Tensors bottoms) {
  if (propagate[kX]) {
    backend().gemm({Op::kNone, Op::kNone, {steps_ * streams_, inputs_, width_}, 1.0F, 0.0F},
                   sums_.data(), parameter(kWeights).data(), bottoms[kX]->grad());
  }
  if (has_static_ && propagate[kStatic]) {
    backend().gemm({Op::kNone, Op::kNone, {streams_, static_inputs_, width_}, 1.0F, 0.0F},
                   constants_.data(), parameter(kStaticWeights).data(), bottoms[kStatic]->grad());
  }
  for (std::size_t i = static_cast<std::size_t>(first_exposed()); i < bottoms.size(); ++i) {
    if (propagate[i]) backend().fill(step_count(), 0.0F, bottoms[i]->grad());
  }
}

void RecurrentLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  before_backward(tops);
  step_backward(steps_ - 1, output_gradient(steps_ - 1, tops), tops);
  for (std::int64_t t = steps_ - 2; t >= 0; --t) {
    backend().gemm({Op::kNone, Op::kNone, {streams_, cells_, width_}, 1.0F, 0.0F}, sums(t + 1),
                   parameter(hidden_weights()).data(), conted_grad_.data());
    multiply_streams(bottoms[kCont]->data() + (t + 1) * streams_, conted_grad_.data(),
                     conted_grad_.data());
    backend().zip({BinaryKind::kSum}, step_count(),
                  {output_gradient(t, tops), conted_grad_.data(), h_grad_.data()});
    step_backward(t, h_grad_.data(), tops);
  }
  add_gradients(bottoms);
  make_bottom_gradients(propagate, bottoms);
}

}  // namespace speedo
