#include "cpu/convolution/convolution.hpp"

#include <algorithm>
#include <vector>

#include <speedo/base/assert.hpp>

#include "cpu/convolution/convolution_by_channel.hpp"
#include "cpu/convolution/convolution_few_channels.hpp"
#include "cpu/convolution/convolution_im2col.hpp"
#include "cpu/convolution/convolution_single_channel.hpp"
#include "cpu/convolution/convolution_whole_image.hpp"
#include "cpu/elementwise/channels.hpp"
#include "cpu/isa.hpp"
#include "cpu/onednn/onednn.hpp"

namespace speedo::cpu {
namespace {

// Blocks may add this share of arithmetic by their padding before channels last, whose backward
// kernels are some 10 to 30 % slower, is better.
constexpr double kWasteMax = 1.25;

double flops(const ConvolutionShape& shape) {
  const auto& windows = shape.transposed ? shape.src_size : shape.dst_size;
  return 2.0 * static_cast<double>(shape.batch * weight_count(shape)) *
         static_cast<double>(count_of(windows));
}

// Kernels know convolutions that are not transposed: what they are asked for, for `shape`.
ConvolutionShape kernel_shape(const ConvolutionShape& shape) {
  return shape.transposed ? mirrored(shape) : shape;
}
ConvolutionPass kernel_pass(const ConvolutionShape& shape, ConvolutionPass pass) {
  if (!shape.transposed || pass == ConvolutionPass::kBackwardWeights) return pass;
  return pass == ConvolutionPass::kForward ? ConvolutionPass::kBackwardData
                                           : ConvolutionPass::kForward;
}

class ChosenConvolution final : public Convolution {
 public:
  ChosenConvolution(const ConvolutionShape& shape, const Context& context)
      : asked_(shape), shape_(kernel_shape(shape)), pool_(context.pool) {
    for (const ConvolutionPass asked : kConvolutionPasses) {
      if (asked != ConvolutionPass::kForward && !shape.trains) break;
      const ConvolutionPass pass = kernel_pass(shape, asked);
      ConvolutionKernels*& chosen = by_pass_[static_cast<std::size_t>(asked)];
      chosen = &choose(pass, context);
      if (chosen->reserve(pass)) continue;
      chosen = &im2col(context);
      chosen->reserve(pass);
    }
  }

  OperationInfo info() const override {
    OperationInfo info;
    info.forward_flops = flops(asked_);
    info.backward_flops = 2.0 * flops(asked_);
    std::vector<std::string> names;
    for (const ConvolutionPass pass : kConvolutionPasses) {
      const ConvolutionKernels* kernels = by_pass_[static_cast<std::size_t>(pass)];
      if (kernels != nullptr) names.push_back(kernels->name(kernel_pass(asked_, pass)));
    }
    info.kernel = names.front();
    if (std::all_of(names.begin(), names.end(),
                    [&](const std::string& name) { return name == names.front(); })) {
      return info;
    }
    for (std::size_t i = 1; i < names.size(); ++i) info.kernel += " | " + names[i];
    return info;
  }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    ConvolutionKernels& kernels = of(ConvolutionPass::kForward);
    if (!asked_.transposed) return kernels.forward(src, weights, bias, dst);
    kernels.backward_data(src, weights, dst);
    if (bias == nullptr && !asked_.activation) return;
    scale_channels(pool_, {dst_array(asked_), asked_.dst_layout},
                   {nullptr, bias, asked_.activation}, dst, dst);
  }
  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    ConvolutionKernels& kernels = of(ConvolutionPass::kBackwardData);
    if (!asked_.transposed) return kernels.backward_data(dst_grad, weights, src_grad);
    kernels.forward(dst_grad, weights, nullptr, src_grad);
  }
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    ConvolutionKernels& kernels = of(ConvolutionPass::kBackwardWeights);
    if (!asked_.transposed) {
      return kernels.backward_weights(src, dst_grad, weights_grad, bias_grad);
    }
    if (weights_grad != nullptr) kernels.backward_weights(dst_grad, src, weights_grad, nullptr);
    if (bias_grad == nullptr) return;
    sum_channels(pool_, {dst_array(asked_), asked_.dst_layout}, nullptr, dst_grad, nullptr,
                 bias_grad);
  }

 private:
  ConvolutionKernels& choose(ConvolutionPass pass, const Context& context) {
    if (by_channel_serves(shape_, context)) {
      if (by_channel_ == nullptr) by_channel_ = make_by_channel_kernels(shape_, context);
      return *by_channel_;
    }
    if (whole_image_serves(shape_, context)) {
      if (whole_image_ == nullptr) whole_image_ = make_whole_image_kernels(shape_, context);
      return *whole_image_;
    }
    if (single_channel_serves(shape_, pass, context)) {
      if (single_channel_ == nullptr)
        single_channel_ = make_single_channel_kernels(shape_, context);
      return *single_channel_;
    }
    if (few_channels_serves(shape_, pass, context)) {
      if (few_channels_ == nullptr) few_channels_ = make_few_channels_kernels(shape_, context);
      return *few_channels_;
    }
    if (!im2col_excels(shape_, pass) && onednn_serves(shape_, pass, context)) {
      if (onednn_ == nullptr) onednn_ = make_onednn_kernels(shape_, context);
      return *onednn_;
    }
    return im2col(context);
  }

  // They serve any pass.
  ConvolutionKernels& im2col(const Context& context) {
    if (im2col_ == nullptr) im2col_ = make_im2col_kernels(shape_, context);
    return *im2col_;
  }

  ConvolutionKernels& of(ConvolutionPass pass) {
    ConvolutionKernels* kernels = by_pass_[static_cast<std::size_t>(pass)];
    SPEEDO_ASSERT(kernels != nullptr);
    return *kernels;
  }

  ConvolutionShape asked_, shape_;  // as it was asked for, and as kernels know it
  ThreadPool& pool_;
  std::unique_ptr<ConvolutionKernels> by_channel_, whole_image_, single_channel_, few_channels_,
      onednn_, im2col_;
  std::array<ConvolutionKernels*, kConvolutionPasses.size()> by_pass_{};
};

// The convolutions with their arrays in the layouts that a net of this kind gives them.
std::vector<ConvolutionShape> with_layouts(std::span<const ConvolutionShape> convolutions,
                                           LayoutKind kind, const Context& context) {
  std::vector<ConvolutionShape> shapes(convolutions.begin(), convolutions.end());
  for (ConvolutionShape& shape : shapes) {
    const Layout src = layout_of(kind, shape.channels);
    shape.src_layout = Layout{};
    shape.dst_layout = layout_of(kind, shape.outputs);
    if (!src.is_plain() && !convolves_plain(shape, context)) shape.src_layout = src;
  }
  return shapes;
}

// Arithmetic with padding, over all convolutions that have kernels.
double work(const std::vector<ConvolutionShape>& convolutions) {
  double sum = 0.0;
  for (const ConvolutionShape& shape : convolutions) {
    const double padding = static_cast<double>(shape.src_layout.channels(shape.channels)) *
                           static_cast<double>(shape.dst_layout.channels(shape.outputs)) /
                           static_cast<double>(shape.channels * shape.outputs);
    sum += flops(shape) * padding;
  }
  return sum;
}

// Whether most of the arithmetic would be done by oneDNN.
bool is_served(const std::vector<ConvolutionShape>& convolutions, const Context& context) {
  double served = 0.0, all = 0.0;
  for (const ConvolutionShape& shape : convolutions) {
    all += flops(shape);
    const ConvolutionPass pass = kernel_pass(shape, ConvolutionPass::kForward);
    if (onednn_serves(kernel_shape(shape), pass, context)) served += flops(shape);
  }
  return served > all / 2;
}

}  // namespace

std::unique_ptr<Convolution> make_convolution(const ConvolutionShape& shape,
                                              const Context& context) {
  SPEEDO_ASSERT(shape.groups > 0 && shape.channels % shape.groups == 0);
  SPEEDO_ASSERT(shape.kernel.size() == shape.src_size.size());
  return std::make_unique<ChosenConvolution>(shape, context);
}

LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions,
                            const Context& context) {
  const LayoutKind block =
      cpu_isa() == CpuIsa::kAvx512 ? LayoutKind::kBlocked16 : LayoutKind::kBlocked8;
  const auto plain = with_layouts(convolutions, LayoutKind::kPlain, context);
  const auto blocked = with_layouts(convolutions, block, context);
  if (is_served(blocked, context) && work(blocked) <= kWasteMax * work(plain)) return block;
  const auto last = with_layouts(convolutions, LayoutKind::kChannelsLast, context);
  if (is_served(last, context)) return LayoutKind::kChannelsLast;
  return LayoutKind::kPlain;
}

bool convolves_plain(const ConvolutionShape& shape, const Context& context) {
  return shape.src_layout.is_plain() && !shape.transposed &&
         onednn_serves(shape, ConvolutionPass::kForward, context) &&
         (!shape.trains || onednn_serves(shape, ConvolutionPass::kBackwardWeights, context));
}

}  // namespace speedo::cpu
