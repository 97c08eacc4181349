#include "core/layers/pooling.hpp"

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "caffe.pb.h"
#include "core/layers/window_options.hpp"

namespace speedo {

Result<std::int64_t> pooled_size(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                 std::int64_t pad, bool round_up, bool clips) {
  const std::int64_t slack = size + 2 * pad - kernel;
  // Rounds towards minus infinity (down) or plus infinity (up), also when the kernel does not fit.
  const std::int64_t down = slack >= 0 ? slack / stride : -((-slack + stride - 1) / stride);
  const std::int64_t up = slack >= 0 ? (slack + stride - 1) / stride : -(-slack / stride);
  std::int64_t windows = (round_up ? up : down) + 1;
  if (clips && (windows - 1) * stride >= size + pad) windows -= 1;
  if (windows < 1) {
    return Error{ErrorCode::kConfig,
                 fmt::format("kernel {} is larger than the padded input {}; use a smaller kernel, "
                             "more padding or global_pooling",
                             kernel, size + 2 * pad)};
  }
  if ((windows - 1) * stride >= size + pad) {
    return Error{ErrorCode::kConfig,
                 fmt::format("kernel {} with stride {} leaves the last window outside the input of "
                             "{}; use round_mode: FLOOR or a smaller stride",
                             kernel, stride, size)};
  }
  return windows;
}

Result<void> PoolingLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto read = read_options(tops.size() > 1);
  if (!read) return error(read.error().message, read.error().code);
  return {};
}

Result<void> PoolingLayer::read_options(bool has_two_tops) {
  const auto& options = parameter_message().pooling_param();
  const auto bad = [](std::string what) { return Error{ErrorCode::kConfig, std::move(what)}; };
  is_stochastic_ = options.pool() == caffe::PoolingParameter::STOCHASTIC;
  const bool is_max = options.pool() == caffe::PoolingParameter::MAX;
  if (has_two_tops && !is_max) return bad("only pool: MAX has a second top, the mask");
  shape_.method = is_max ? PoolingShape::Method::kMax : PoolingShape::Method::kAverage;
  SPEEDO_ASSIGN(const WindowGeometry window, read_window_options(options));
  const std::int64_t kernel_h = window.kernel[0], kernel_w = window.kernel[1];
  const std::int64_t stride_h = window.stride[0], stride_w = window.stride[1];
  const std::int64_t pad_h = window.pad[0], pad_w = window.pad[1];
  if (options.global_pooling() && (pad_h != 0 || pad_w != 0 || stride_h != 1 || stride_w != 1)) {
    return bad("global_pooling works with pad 0 and stride 1 only");
  }
  if (is_stochastic_ && (pad_h != 0 || pad_w != 0)) {
    return bad(
        fmt::format("pool: STOCHASTIC takes no padding, pad is {} x {}; use MAX or AVE, or "
                    "leave pad out",
                    pad_h, pad_w));
  }
  if (pad_h >= kernel_h || pad_w >= kernel_w) {
    return bad(fmt::format("pad {} x {} must be smaller than the kernel {} x {}", pad_h, pad_w,
                           kernel_h, kernel_w));
  }
  shape_.kernel_h = kernel_h, shape_.kernel_w = kernel_w;
  shape_.stride_h = stride_h, shape_.stride_w = stride_w;
  shape_.pad_h = pad_h, shape_.pad_w = pad_w;
  return {};
}

Result<void> PoolingLayer::reshape(Tensors bottoms, Tensors tops) {
  const auto& options = parameter_message().pooling_param();
  const Shape& bottom = bottoms[0]->shape();
  if (bottom.axes() != 4) {
    return error(fmt::format("needs a bottom of 4 axes (N x C x H x W), it has {}: {}",
                             bottom.axes(), to_string(bottom)));
  }
  shape_.batch = bottom[0];
  shape_.channels = bottom[1];
  shape_.src_h = bottom[2];
  shape_.src_w = bottom[3];
  if (shape_.src_h < 1 || shape_.src_w < 1) {
    return error(fmt::format("bottom {} is empty", to_string(bottom)));
  }
  if (options.global_pooling()) {
    shape_.kernel_h = shape_.src_h;
    shape_.kernel_w = shape_.src_w;
  }
  const bool round_up = options.round_mode() == caffe::PoolingParameter::CEIL;
  const bool clips = shape_.pad_h > 0 || shape_.pad_w > 0;
  auto height =
      pooled_size(shape_.src_h, shape_.kernel_h, shape_.stride_h, shape_.pad_h, round_up, clips);
  if (!height) return error("height: " + height.error().message);
  auto width =
      pooled_size(shape_.src_w, shape_.kernel_w, shape_.stride_w, shape_.pad_w, round_up, clips);
  if (!width) return error("width: " + width.error().message);
  shape_.dst_h = *height;
  shape_.dst_w = *width;
  auto top_shape = Shape::create({bottom[0], bottom[1], *height, *width});
  if (!top_shape) return error(top_shape.error().message);
  for (Tensor* top : tops) top->reshape(*top_shape);
  has_mask_ = tops.size() > 1;
  if (is_stochastic_) return reshape_stochastic(*top_shape);
  reads_ = backend().backward_reads(shape_);
  return {};
}

// Which element a window took is kept as a float.
Result<void> PoolingLayer::reshape_stochastic(const Shape& top) {
  constexpr std::int64_t kPlaneMax = std::int64_t{1} << 24U;
  if (shape_.src_h * shape_.src_w > kPlaneMax) {
    return error(fmt::format("pool: STOCHASTIC takes images of at most {} elements, they have {}",
                             kPlaneMax, shape_.src_h * shape_.src_w));
  }
  reads_ = {.src = !samples(), .dst = !samples()};
  winners_.reshape(samples() ? top : Shape{0});
  return {};
}

// Indices within a plane are a matter of plain order.
LayoutRule PoolingLayer::layout_rule() const {
  return has_mask_ || is_stochastic_ ? LayoutRule::kPlain : LayoutRule::kNative;
}

Result<void> PoolingLayer::prepare(Tensors bottoms, Tensors /*tops*/, bool trains) {
  shape_.layout = bottoms[0]->layout();
  shape_.trains = trains;
  if (is_stochastic_) return allocate(winners_);
  auto made = backend().make_pooling(shape_);
  if (!made) return error(made.error().message, made.error().code);
  operation_ = std::move(*made);
  return context().plan_only ? Result<void>() : operation_->take_memory();
}

OperationInfo PoolingLayer::info() const {
  return is_stochastic_ ? OperationInfo{} : operation_->info();
}

// Training draws an element of each window, testing takes what that gives on average.
void PoolingLayer::forward_stochastic(const float* src, float* dst) {
  if (!samples()) return backend().weigh_windows(shape_, src, dst);
  SPEEDO_ASSERT(context().random != nullptr);
  backend().sample_windows(shape_, context().random->next(), src, dst, winners_.data());
}

Result<void> PoolingLayer::forward(Tensors bottoms, Tensors tops) {
  if (is_stochastic_) {
    forward_stochastic(bottoms[0]->data(), tops[0]->data());
    return {};
  }
  operation_->forward(bottoms[0]->data(), tops[0]->data(),
                      tops.size() > 1 ? tops[1]->data() : nullptr);
  return {};
}

void PoolingLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  if (is_stochastic_ && samples()) {
    backend().sample_windows_backward(shape_, winners_.data(), tops[0]->grad(), bottoms[0]->grad());
    return;
  }
  if (is_stochastic_) {
    backend().weigh_windows_backward(shape_, bottoms[0]->data(), tops[0]->data(), tops[0]->grad(),
                                     bottoms[0]->grad());
    return;
  }
  operation_->backward(bottoms[0]->data(), tops[0]->data(), tops[0]->grad(), bottoms[0]->grad());
}

}  // namespace speedo
