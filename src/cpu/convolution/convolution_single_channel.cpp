#include "cpu/convolution/convolution_single_channel.hpp"

#include <optional>
#include <string>

#include <speedo/base/assert.hpp>

#include "cpu/convolution/convolution_single_channel_kernels.hpp"
#include "cpu/elementwise/elementwise.hpp"

namespace speedo::cpu {
namespace {

class SingleChannelKernels final : public ConvolutionKernels {
 public:
  SingleChannelKernels(const ConvolutionShape& shape, const Context& context)
      : batch_(shape.batch),
        activation_(shape.activation),
        pool_(context.pool),
        scratch_(context.scratch),
        shape_{.src_width = shape.src_size[1],
               .dst_height = shape.dst_size[0],
               .dst_width = shape.dst_size[1],
               .outputs = shape.outputs,
               .kernel_height = shape.kernel[0],
               .kernel_width = shape.kernel[1],
               .stride_y = shape.stride[0],
               .stride_x = shape.stride[1]},
        width_(single_channel_width(shape.outputs)),
        src_sample_(count_of(shape.src_size)),
        dst_sample_(shape.outputs * count_of(shape.dst_size)) {}

  bool reserve(ConvolutionPass pass) override {
    if (pass == ConvolutionPass::kForward) {
      scratch_.reserve(0, packed_floats());
    } else {
      scratch_.reserve(packed_floats());
    }
    return true;
  }

  std::string name(ConvolutionPass) const override { return "cpu gray"; }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    float* packed = scratch_.shared();
    fill(packed_floats(), 0.0F, packed);
    for (std::int64_t output = 0; output < shape_.outputs; ++output) {
      const float* from = weights + output * shape_.taps();
      for (std::int64_t tap = 0; tap < shape_.taps(); ++tap) {
        packed[tap * width_ + output] = from[tap];
      }
      if (bias != nullptr) bias_of(packed)[output] = bias[output];
    }
    const bool is_relu = activation_ && activation_->kind == UnaryKind::kRelu;
    const float slope = is_relu ? activation_->a : 1.0F;
    pool_.split(batch_, 1, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t n = first; n < last; ++n) {
        float* to = dst + n * dst_sample_;
        single_channel_forward(shape_, src + n * src_sample_, packed, bias_of(packed), slope, to);
        if (activation_ && !is_relu) map(*activation_, dst_sample_, to, to);
      }
    });
  }

  void backward_data(const float*, const float*, float*) override { SPEEDO_ASSERT(false); }

  // Each thread sums in an array of its own; they are added in the order of the threads, so that
  // the same thread count always gives the same sum.
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    pool_.split(batch_, 1, [&](std::int64_t first, std::int64_t last, int thread) {
      float* sums = scratch_.block(thread);
      fill(packed_floats(), 0.0F, sums);
      for (std::int64_t n = first; n < last; ++n) {
        single_channel_backward_weights(shape_, src + n * src_sample_, dst_grad + n * dst_sample_,
                                        sums);
      }
    });
    const auto threads = static_cast<int>(pool_.divide(batch_, 1).parts);
    for (int thread = 0; thread < threads; ++thread) {
      add_sums(scratch_.block(thread), weights_grad, bias_grad);
    }
  }

 private:
  // The taps' weights, or their gradients, and the bias.
  std::int64_t packed_floats() const { return aligned((shape_.taps() + 1) * width_); }
  float* bias_of(float* packed) const { return packed + shape_.taps() * width_; }

  void add_sums(float* sums, float* weights_grad, float* bias_grad) const {
    if (bias_grad != nullptr) axpby(shape_.outputs, 1.0F, bias_of(sums), 1.0F, bias_grad);
    if (weights_grad == nullptr) return;
    for (std::int64_t output = 0; output < shape_.outputs; ++output) {
      for (std::int64_t tap = 0; tap < shape_.taps(); ++tap) {
        weights_grad[output * shape_.taps() + tap] += sums[tap * width_ + output];
      }
    }
  }

  std::int64_t batch_;
  std::optional<UnaryOp> activation_;
  ThreadPool& pool_;
  Scratch& scratch_;
  SingleChannelShape shape_;
  std::int64_t width_, src_sample_, dst_sample_;
};

}  // namespace

bool single_channel_serves(const ConvolutionShape& shape, ConvolutionPass pass,
                           const Context& context) {
  return pass != ConvolutionPass::kBackwardData && shape.kernel.size() == 2 &&
         shape.channels == 1 && shape.src_layout.is_plain() &&
         shape.dst_layout.block == shape.outputs && all_are(shape.pad, 0) &&
         all_are(shape.dilation, 1) && context.precision == CpuPrecision::kFloat32 &&
         single_channel_width(shape.outputs) > 0;
}

std::unique_ptr<ConvolutionKernels> make_single_channel_kernels(const ConvolutionShape& shape,
                                                      const Context& context) {
  return std::make_unique<SingleChannelKernels>(shape, context);
}

}  // namespace speedo::cpu
