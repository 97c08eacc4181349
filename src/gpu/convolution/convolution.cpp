#include "gpu/convolution/convolution.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>

#include "gpu/convolution/convolution_cudnn.hpp"
#include "gpu/convolution/convolution_im2col.hpp"
#include "gpu/convolution/convolution_product.hpp"
#include "gpu/convolution/finish_forward.hpp"
#include "gpu/elementwise/channels.hpp"

namespace speedo::gpu {
namespace {

// Others are computed by matrix products, which copy arrays that are not plain.
constexpr std::size_t kCudnnAxesMax = 3;

double flops_of(const ConvolutionShape& shape) {
  const auto& windows = shape.transposed ? shape.src_size : shape.dst_size;
  return 2.0 * static_cast<double>(shape.batch * weight_count(shape)) *
         static_cast<double>(count_of(windows));
}

// cuDNN's kernels for arrays of bfloat16 load so many neighbouring channels at once.
constexpr std::int64_t kChannelsAtOnce = 8;

// Whether the most of what is computed makes arrays that such kernels can load.
bool suits_bfloat16_arrays(std::span<const ConvolutionShape> convolutions) {
  double all = 0.0, suited = 0.0;
  for (const ConvolutionShape& shape : convolutions) {
    all += flops_of(shape);
    if (shape.outputs % kChannelsAtOnce == 0) suited += flops_of(shape);
  }
  return 2.0 * suited >= all;
}

// Kernels know convolutions that are not transposed: what they are asked for.
ConvolutionPass kernel_pass(const ConvolutionShape& shape, ConvolutionPass pass) {
  if (!shape.transposed || pass == ConvolutionPass::kBackwardWeights) return pass;
  return pass == ConvolutionPass::kForward ? ConvolutionPass::kBackwardData
                                           : ConvolutionPass::kForward;
}

class ChosenConvolution final : public Convolution {
 public:
  ChosenConvolution(const ConvolutionShape& shape, const ConvolutionContext& context)
      : asked_(shape), shape_(shape.transposed ? mirrored(shape) : shape), context_(context) {}

  Result<void> choose() {
    for (const ConvolutionPass pass : kConvolutionPasses) {
      if (pass != ConvolutionPass::kForward && !asked_.trains) break;
      SPEEDO_TRY(choose(pass));
    }
    return {};
  }

  OperationInfo info() const override {
    OperationInfo info;
    info.forward_flops = flops_of(asked_);
    info.backward_flops = 2.0 * flops_of(asked_);
    std::vector<std::string> names;
    for (const ConvolutionPass pass : kConvolutionPasses) {
      const ConvolutionEngine* kernels = by_pass_[static_cast<std::size_t>(pass)];
      if (kernels != nullptr) names.push_back(kernels->name(kernel_pass(asked_, pass)));
    }
    const bool is_one = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == names.front();
    });
    info.kernel = names.front();
    for (std::size_t i = 1; i < names.size() && !is_one; ++i) info.kernel += " | " + names[i];
    return info;
  }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    ConvolutionEngine& kernels = of(ConvolutionPass::kForward);
    if (!asked_.transposed) return kernels.forward(src, weights, bias, dst);
    kernels.backward_data(src, weights, dst);
    finish_forward(queue(), asked_, bias, dst);
  }
  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    ConvolutionEngine& kernels = of(ConvolutionPass::kBackwardData);
    if (!asked_.transposed) return kernels.backward_data(dst_grad, weights, src_grad);
    kernels.forward(dst_grad, weights, nullptr, src_grad);
  }
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    if (weights_grad != nullptr) {
      ConvolutionEngine& kernels = of(ConvolutionPass::kBackwardWeights);
      if (asked_.transposed) std::swap(src, dst_grad);
      kernels.backward_weights(src, dst_grad, weights_grad);
      if (asked_.transposed) std::swap(src, dst_grad);
    }
    if (bias_grad == nullptr) return;
    sum_channels(queue(), dst_view(), nullptr, dst_grad, nullptr, bias_grad);
  }

 private:
  // By the first that serves the pass; the last serves any, empty arrays too.
  Result<void> choose(ConvolutionPass asked) {
    constexpr std::array kMakers{make_product_engine, make_cudnn_engine, make_im2col_engine};
    const ConvolutionPass pass = kernel_pass(asked_, asked);
    for (std::size_t i = is_empty() ? kMakers.size() - 1 : 0; i < kMakers.size(); ++i) {
      if (engines_[i] == nullptr) engines_[i] = kMakers[i](shape_, context_);
      auto served = engines_[i]->reserve(pass);
      if (!served && served.error().code == ErrorCode::kUnsupported) continue;
      by_pass_[static_cast<std::size_t>(asked)] = engines_[i].get();
      return served;
    }
    return Error{ErrorCode::kInternal, "no kernels serve this convolution"};
  }

  bool is_empty() const {
    return shape_.batch == 0 || count_of(shape_.src_size) == 0 || count_of(shape_.dst_size) == 0;
  }
  ConvolutionEngine& of(ConvolutionPass pass) {
    ConvolutionEngine* kernels = by_pass_[static_cast<std::size_t>(pass)];
    SPEEDO_ASSERT(kernels != nullptr);
    return *kernels;
  }
  Queue& queue() { return context_.products.queue; }
  ChannelView dst_view() const { return {dst_array(asked_), asked_.dst_layout}; }

  ConvolutionShape asked_, shape_;  // as it was asked for, and as kernels know it
  ConvolutionContext context_;
  std::array<std::unique_ptr<ConvolutionEngine>, 3> engines_;
  std::array<ConvolutionEngine*, kConvolutionPasses.size()> by_pass_{};
};

}  // namespace

LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions,
                            Arithmetic arithmetic) {
  const bool are_known = std::all_of(
      convolutions.begin(), convolutions.end(),
      [](const ConvolutionShape& shape) { return shape.kernel.size() <= kCudnnAxesMax; });
  if (arithmetic == Arithmetic::kFloat32 || !are_known) return LayoutKind::kPlain;
  return arithmetic == Arithmetic::kBfloat16 && suits_bfloat16_arrays(convolutions)
             ? LayoutKind::kChannelsLastBfloat16
             : LayoutKind::kChannelsLast;
}

Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape,
                                                      const ConvolutionContext& context) {
  SPEEDO_ASSERT(shape.groups > 0 && shape.channels % shape.groups == 0);
  SPEEDO_ASSERT(shape.kernel.size() == shape.src_size.size());
  auto made = std::make_unique<ChosenConvolution>(shape, context);
  SPEEDO_TRY(made->choose());
  return std::unique_ptr<Convolution>(std::move(made));
}

}  // namespace speedo::gpu
