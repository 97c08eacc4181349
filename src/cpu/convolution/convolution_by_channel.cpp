#include "cpu/convolution/convolution_by_channel.hpp"

#include <algorithm>
#include <utility>

#include "cpu/convolution/convolution_by_channel_kernels.hpp"
#include "cpu/elementwise/elementwise.hpp"

namespace speedo::cpu {
namespace {

// Scratch and taps beyond this are for shapes that nobody means; other kernels take them.
constexpr std::int64_t kKernelMax = 4096;
constexpr std::int64_t kFloatsMax = std::int64_t{1} << 24U;

ChannelAxis axis_of(const ConvolutionShape& shape, std::size_t i) {
  return {shape.src_size[i], shape.dst_size[i], shape.kernel[i],
          shape.stride[i],   shape.pad[i],      shape.dilation[i]};
}

// A single axis is a row.
ChannelPlane plane_of(const ConvolutionShape& shape) {
  const bool is_row = shape.kernel.size() == 1;
  return ChannelPlane(is_row ? ChannelAxis{} : axis_of(shape, 0), axis_of(shape, is_row ? 0 : 1));
}

class ByChannelKernels final : public ConvolutionKernels {
 public:
  ByChannelKernels(const ConvolutionShape& shape, const Context& context)
      : batch_(shape.batch),
        channels_(shape.channels),
        activation_(shape.activation),
        pool_(context.pool),
        scratch_(context.scratch),
        plane_(plane_of(shape)),
        src_(count_of(shape.src_size)),
        dst_(count_of(shape.dst_size)),
        taps_(count_of(shape.kernel)) {}

  bool reserve(ConvolutionPass) override {
    scratch_.reserve(plane_.scratch_floats());
    return true;
  }

  std::string name(ConvolutionPass) const override { return "cpu by channel"; }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    for_each_plane([&](std::int64_t plane, float* scratch) {
      const std::int64_t channel = plane % channels_;
      float* to = dst + plane * dst_;
      fill(dst_, bias == nullptr ? 0.0F : bias[channel], to);
      by_channel_down(plane_, src + plane * src_, weights + channel * taps_, to, scratch);
      if (activation_) map(*activation_, dst_, to, to);
    });
  }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    for_each_plane([&](std::int64_t plane, float* scratch) {
      by_channel_up(plane_, dst_grad + plane * dst_, weights + plane % channels_ * taps_,
                    src_grad + plane * src_, scratch);
    });
  }

  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    pool_.split(channels_, 1, [&](std::int64_t first, std::int64_t last, int thread) {
      for (std::int64_t channel = first; channel < last; ++channel) {
        for (std::int64_t n = 0; n < batch_; ++n) {
          const std::int64_t plane = n * channels_ + channel;
          const float* grad = dst_grad + plane * dst_;
          if (bias_grad != nullptr) bias_grad[channel] += sum(dst_, grad);
          if (weights_grad == nullptr) continue;
          by_channel_weights(plane_, src + plane * src_, grad, weights_grad + channel * taps_,
                             scratch_.block(thread));
        }
      }
    });
  }

 private:
  template <class Body>
  void for_each_plane(const Body& body) {
    pool_.split(batch_ * channels_, 1, [&](std::int64_t first, std::int64_t last, int thread) {
      float* const scratch = scratch_.block(thread);
      for (std::int64_t plane = first; plane < last; ++plane) body(plane, scratch);
    });
  }

  std::int64_t batch_, channels_;
  std::optional<UnaryOp> activation_;
  ThreadPool& pool_;
  Scratch& scratch_;
  ChannelPlane plane_;
  std::int64_t src_, dst_, taps_;  // elements of a channel
};

}  // namespace

bool by_channel_serves(const ConvolutionShape& shape, const Context& context) {
  const bool fits = shape.groups == shape.channels && shape.groups == shape.outputs &&
                    (shape.kernel.size() == 1 || shape.kernel.size() == 2) &&
                    shape.src_layout.is_plain() && shape.dst_layout.is_plain() &&
                    std::ranges::max(shape.kernel) <= kKernelMax &&
                    context.precision == CpuPrecision::kFloat32;
  return fits && plane_of(shape).scratch_floats() <= kFloatsMax;
}

std::unique_ptr<ConvolutionKernels> make_by_channel_kernels(const ConvolutionShape& shape,
                                                            const Context& context) {
  return std::make_unique<ByChannelKernels>(shape, context);
}

}  // namespace speedo::cpu
