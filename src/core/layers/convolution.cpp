#include "core/layers/convolution.hpp"

#include <fmt/format.h>

#include "caffe.pb.h"
#include "core/layers/support.hpp"
#include "core/layers/window_options.hpp"

namespace speedo {

Result<void> ConvolutionLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().convolution_param();
  const Shape& bottom = bottoms[0]->shape();
  auto axis = bottom.canonical_axis(options.axis());
  if (!axis) return error(axis.error().message);
  axis_ = *axis;
  shape_.transposed = type() == "Deconvolution";
  has_bias_ = options.bias_term();
  shape_.channels = bottom[axis_];
  shape_.outputs = options.num_output();
  shape_.groups = options.group();
  if (shape_.outputs == 0) return error("convolution_param needs num_output > 0");
  if (shape_.channels == 0) return error(fmt::format("bottom {} is empty", to_string(bottom)));
  if (shape_.groups == 0 || shape_.channels % shape_.groups != 0 ||
      shape_.outputs % shape_.groups != 0) {
    return error(fmt::format("group {} must divide both {} input channels and num_output {}",
                             shape_.groups, shape_.channels, shape_.outputs));
  }
  auto geometry = read_window_options(options, bottom.axes() - axis_ - 1);
  if (!geometry) return error(geometry.error().message);
  put_windows(*std::move(geometry), shape_);

  std::vector<std::int64_t> dims{shape_.outputs, shape_.channels / shape_.groups};
  if (shape_.transposed) dims = {shape_.channels, shape_.outputs / shape_.groups};
  dims.insert(dims.end(), shape_.kernel.begin(), shape_.kernel.end());
  auto weights = Shape::create(std::move(dims));
  if (!weights) return error(weights.error().message);
  request_parameter(*weights, &options.weight_filler());
  if (has_bias_) request_parameter({shape_.outputs}, &options.bias_filler());
  return {};
}

Result<std::int64_t> ConvolutionLayer::output_size(std::size_t axis, std::int64_t size) const {
  if (!shape_.transposed) return window_count(shape_, axis, size);
  const auto bad = [](std::string what) { return Error{ErrorCode::kConfig, std::move(what)}; };
  if (size == 0) return bad("the input has size 0; it needs at least 1");
  const std::int64_t extent = shape_.dilation[axis] * (shape_.kernel[axis] - 1) + 1;
  const std::int64_t covered = shape_.stride[axis] * (size - 1) + extent;
  const std::int64_t pad = 2 * shape_.pad[axis];
  if (covered > pad) return covered - pad;
  return bad(fmt::format("pad {} on both sides leaves nothing of the {} that the kernels cover; "
                         "use less padding",
                         shape_.pad[axis], covered));
}

Result<void> ConvolutionLayer::compute_output_size(const Shape& bottom) {
  shape_.src_size.clear();
  shape_.dst_size.clear();
  for (std::size_t i = 0; i < shape_.kernel.size(); ++i) {
    const std::int64_t size = bottom[axis_ + 1 + static_cast<int>(i)];
    const auto made = output_size(i, size);
    if (!made) {
      return error(
          fmt::format("spatial axis {} of {}: {}", i, to_string(bottom), made.error().message));
    }
    shape_.src_size.push_back(size);
    shape_.dst_size.push_back(*made);
  }
  return {};
}

Result<void> ConvolutionLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  for (const Tensor* other : bottoms.subspan(1)) {
    if (other->shape() != bottom) {
      return error(fmt::format("its bottoms differ in shape: {} and {}", to_string(bottom),
                               to_string(other->shape())));
    }
  }
  const int axes = axis_ + 1 + static_cast<int>(shape_.kernel.size());
  if (bottom.axes() != axes || bottom[axis_] != shape_.channels) {
    return error(fmt::format("has weights for {} channels on axis {} of {} axes, its bottom is {}",
                             shape_.channels, axis_, axes, to_string(bottom)));
  }
  SPEEDO_TRY(compute_output_size(bottom));
  std::vector<std::int64_t> dims(bottom.dims().begin(), bottom.dims().begin() + axis_);
  dims.push_back(shape_.outputs);
  dims.insert(dims.end(), shape_.dst_size.begin(), shape_.dst_size.end());
  auto top_shape = Shape::create(std::move(dims));
  if (!top_shape) return error(top_shape.error().message);
  for (Tensor* top : tops) top->reshape(*top_shape);
  shape_.batch = bottom.count(0, axis_);
  shape_.src_layout = shape_.dst_layout = {};
  bottom_count_ = static_cast<int>(bottoms.size());
  return {};
}

// Layouts speak of axis 1. Upsampling, each channel by itself, is fast in all of them, and what
// follows is mostly plain; but the gradient by its weights is fast in plain order alone.
LayoutRule ConvolutionLayer::layout_rule() const {
  if (axis_ != 1) return LayoutRule::kPlain;
  const bool by_channel = shape_.groups == shape_.channels && shape_.groups == shape_.outputs;
  if (!shape_.transposed || !by_channel) return LayoutRule::kNative;
  return parameter_needs_grad(0) ? LayoutRule::kPlain : LayoutRule::kSame;
}

const ConvolutionShape* ConvolutionLayer::convolution_shape() const {
  return axis_ == 1 ? &shape_ : nullptr;
}

// One operation serves all bottoms, so they lie alike.
bool ConvolutionLayer::takes_plain_bottom(LayoutKind native) const {
  if (bottom_count_ > 1) return false;
  ConvolutionShape shape = shape_;
  shape.src_layout = {};
  shape.dst_layout = layout_of(native, shape.outputs);
  return backend().convolves_plain(shape);
}

Fused ConvolutionLayer::fuse(Layer& next, const FusionTerms& terms) {
  const std::optional<UnaryOp> activation = next.activation();
  if (!activation || !backend().fuses(Producer::kConvolution, *activation)) return {};
  return activation_.take(next, terms);
}

Result<void> ConvolutionLayer::prepare(Tensors bottoms, Tensors tops, bool trains) {
  shape_.src_layout = bottoms[0]->layout();
  shape_.dst_layout = tops[0]->layout();
  shape_.activation = activation_.op();
  shape_.trains = trains;
  SPEEDO_ASSIGN(operation_, backend().make_convolution(shape_));
  return {};
}

OperationInfo ConvolutionLayer::info() const {
  OperationInfo info = operation_->info();
  info.forward_flops *= bottom_count_;
  info.backward_flops *= bottom_count_;
  return info;
}

Result<void> ConvolutionLayer::forward(Tensors bottoms, Tensors tops) {
  for (std::size_t i = 0; i < bottoms.size(); ++i) {
    operation_->forward(bottoms[i]->data(), parameter(0).data(),
                        has_bias_ ? parameter(1).data() : nullptr, tops[i]->data());
  }
  return {};
}

void ConvolutionLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  float* weights_grad = parameter_needs_grad(0) ? parameter(0).grad() : nullptr;
  float* bias_grad = has_bias_ && parameter_needs_grad(1) ? parameter(1).grad() : nullptr;
  for (std::size_t i = 0; i < bottoms.size(); ++i) {
    if (weights_grad != nullptr || bias_grad != nullptr) {
      operation_->backward_weights(bottoms[i]->data(), tops[i]->grad(), weights_grad, bias_grad);
    }
    if (propagate[i]) {
      operation_->backward_data(tops[i]->grad(), parameter(0).data(), bottoms[i]->grad());
    }
  }
}

}  // namespace speedo
