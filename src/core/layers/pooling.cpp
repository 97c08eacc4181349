#include "core/layers/pooling.hpp"

#include <optional>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "caffe.pb.h"

namespace speedo {
namespace {

// Larger windows cannot fit any blob and would overflow sums.
constexpr std::int64_t kGeometryMax = 1 << 30;

struct Pair {
  std::int64_t h = 0, w = 0;
};

// `name`, or `name`_h and `name`_w, but not both. `required`: one of the forms must be there.
Result<Pair> resolve(const char* name, std::optional<std::uint32_t> both,
                     std::optional<std::uint32_t> h, std::optional<std::uint32_t> w,
                     std::optional<std::uint32_t> fallback) {
  if (h.has_value() != w.has_value()) {
    return Error{ErrorCode::kConfig, fmt::format("give both {0}_h and {0}_w", name)};
  }
  if (both.has_value() && h.has_value()) {
    return Error{ErrorCode::kConfig,
                 fmt::format("give either {0} (kernel_size) or {0}_h and {0}_w, not both", name)};
  }
  Pair pair{h.value_or(0), w.value_or(0)};
  if (!h.has_value()) {
    if (!both.has_value()) both = fallback;
    if (!both.has_value()) {
      return Error{ErrorCode::kConfig,
                   "pooling_param needs kernel_size, kernel_h and kernel_w, or global_pooling"};
    }
    pair = {*both, *both};
  }
  if (pair.h > kGeometryMax || pair.w > kGeometryMax) {
    return Error{ErrorCode::kConfig, fmt::format("{} must be at most {}", name, kGeometryMax)};
  }
  return pair;
}

std::optional<std::uint32_t> given(bool has, std::uint32_t value) {
  return has ? std::optional<std::uint32_t>(value) : std::nullopt;
}

}  // namespace

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
  if (options.pool() == caffe::PoolingParameter::STOCHASTIC) {
    return Error{ErrorCode::kUnsupported, "pool: STOCHASTIC is not supported; use MAX or AVE"};
  }
  const bool is_max = options.pool() == caffe::PoolingParameter::MAX;
  if (has_two_tops && !is_max) return bad("only pool: MAX has a second top, the mask");
  shape_.method = is_max ? PoolingShape::Method::kMax : PoolingShape::Method::kAverage;
  const auto fallback_kernel =
      options.global_pooling() ? std::optional<std::uint32_t>(1) : std::nullopt;
  if (options.global_pooling() &&
      (options.has_kernel_size() || options.has_kernel_h() || options.has_kernel_w())) {
    return bad("global_pooling takes the whole image; leave the kernel size out");
  }
  SPEEDO_ASSIGN(const Pair kernel,
                resolve("kernel", given(options.has_kernel_size(), options.kernel_size()),
                        given(options.has_kernel_h(), options.kernel_h()),
                        given(options.has_kernel_w(), options.kernel_w()), fallback_kernel));
  SPEEDO_ASSIGN(const Pair stride, resolve("stride", given(options.has_stride(), options.stride()),
                                           given(options.has_stride_h(), options.stride_h()),
                                           given(options.has_stride_w(), options.stride_w()), 1));
  SPEEDO_ASSIGN(const Pair pad, resolve("pad", given(options.has_pad(), options.pad()),
                                        given(options.has_pad_h(), options.pad_h()),
                                        given(options.has_pad_w(), options.pad_w()), 0));
  if (kernel.h < 1 || kernel.w < 1) return bad("the kernel size must be at least 1");
  if (stride.h < 1 || stride.w < 1) return bad("the stride must be at least 1");
  if (options.global_pooling() && (pad.h != 0 || pad.w != 0 || stride.h != 1 || stride.w != 1)) {
    return bad("global_pooling works with pad 0 and stride 1 only");
  }
  if (pad.h > kWindowReachMax || pad.w > kWindowReachMax) {
    return bad(fmt::format("pad is {} x {}, it must be at most {}", pad.h, pad.w, kWindowReachMax));
  }
  if (pad.h >= kernel.h || pad.w >= kernel.w) {
    return bad(fmt::format("pad {} x {} must be smaller than the kernel {} x {}", pad.h, pad.w,
                           kernel.h, kernel.w));
  }
  shape_.kernel_h = kernel.h, shape_.kernel_w = kernel.w;
  shape_.stride_h = stride.h, shape_.stride_w = stride.w;
  shape_.pad_h = pad.h, shape_.pad_w = pad.w;
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
  reads_ = backend().backward_reads(shape_);
  return {};
}

// Indices within a plane are a matter of plain order.
LayoutRule PoolingLayer::layout_rule() const {
  return has_mask_ ? LayoutRule::kPlain : LayoutRule::kNative;
}

Result<void> PoolingLayer::prepare(Tensors bottoms, Tensors /*tops*/, bool trains) {
  shape_.layout = bottoms[0]->layout();
  shape_.trains = trains;
  auto made = backend().make_pooling(shape_);
  if (!made) return error(made.error().message, made.error().code);
  operation_ = std::move(*made);
  return context().plan_only ? Result<void>() : operation_->take_memory();
}

Result<void> PoolingLayer::forward(Tensors bottoms, Tensors tops) {
  operation_->forward(bottoms[0]->data(), tops[0]->data(),
                      tops.size() > 1 ? tops[1]->data() : nullptr);
  return {};
}

void PoolingLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  operation_->backward(bottoms[0]->data(), tops[0]->data(), tops[0]->grad(), bottoms[0]->grad());
}

}  // namespace speedo
