#include "cpu/convolution/convolution_few_channels.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>
#include <speedo/base/round_up.hpp>

#include "cpu/convolution/convolution_few_channels_kernels.hpp"
#include "cpu/elementwise/elementwise.hpp"
#include "cpu/isa.hpp"

namespace speedo::cpu {
namespace {

// Columns that are added to the image at once stay in the first cache; those that are summed over
// positions are many, so that the sums are read and written seldom.
constexpr std::int64_t kScatterBytes = 32 << 10;
constexpr std::int64_t kGatherBytes = 128 << 10;
// Vectors filled so much better than along the channels make up for the columns: measured.
double gain_min(ConvolutionPass pass) {
  if (cpu_isa() == CpuIsa::kAvx512) return 1.2;
  return pass == ConvolutionPass::kBackwardData ? 1.1 : 1.05;
}

// Lanes computed for each one that counts.
double waste(std::int64_t count, std::int64_t multiple) {
  return static_cast<double>(round_up(count, multiple)) / static_cast<double>(count);
}

class FewChannelsKernels final : public ConvolutionKernels {
 public:
  FewChannelsKernels(const ConvolutionShape& shape, const Context& context)
      : batch_(shape.batch),
        outputs_(shape.outputs),
        pool_(context.pool),
        scratch_(context.scratch),
        shape_{.channels = shape.channels,
               .src_height = shape.src_size[0],
               .src_width = shape.src_size[1],
               .dst_width = shape.dst_size[1],
               .kernel_height = shape.kernel[0],
               .kernel_width = shape.kernel[1],
               .stride_y = shape.stride[0],
               .stride_x = shape.stride[1],
               .pad_y = shape.pad[0],
               .pad_x = shape.pad[1]},
        taps_(count_of(shape.kernel)),
        positions_(count_of(shape.dst_size)),
        src_sample_(shape.channels * count_of(shape.src_size)),
        // One column more, of ones, sums the bias's gradient.
        width_(round_up(shape.channels * taps_ + 1, few_channels_panel())) {}

  bool reserve(ConvolutionPass pass) override {
    if (pass == ConvolutionPass::kBackwardData) {
      scratch_.reserve(at_once(kScatterBytes) * few_channels_pitch(width_), width_ * outputs_);
    } else {
      scratch_.reserve((outputs_ + at_once(kGatherBytes)) * few_channels_pitch(width_));
    }
    return true;
  }

  std::string name(ConvolutionPass) const override { return "cpu narrow"; }

  void forward(const float*, const float*, const float*, float*) override { SPEEDO_ASSERT(false); }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    float* panels = scratch_.shared();
    pack(weights, panels);
    const std::int64_t group = at_once(kScatterBytes);
    pool_.split(batch_, 1, [&](std::int64_t first, std::int64_t last, int thread) {
      float* columns = scratch_.block(thread);
      for (std::int64_t n = first; n < last; ++n) {
        float* image = src_grad + n * src_sample_;
        fill(src_sample_, 0.0F, image);
        for (std::int64_t p = 0; p < positions_; p += group) {
          const std::int64_t count = std::min(group, positions_ - p);
          few_channels_product(count, outputs_, width_, dst_grad + (n * positions_ + p) * outputs_,
                         panels, columns);
          few_channels_scatter(shape_, p, count, width_, columns, image);
        }
      }
    });
  }

  // Each thread sums in an array of its own; they are added in the order of the threads, so that
  // the same thread count always gives the same sum.
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    const std::int64_t group = at_once(kGatherBytes), pitch = few_channels_pitch(width_);
    pool_.split(batch_, 1, [&](std::int64_t first, std::int64_t last, int thread) {
      float* sums = scratch_.block(thread);
      float* columns = sums + outputs_ * pitch;
      fill((outputs_ + group) * pitch, 0.0F, sums);
      for (std::int64_t i = 0; i < group; ++i) columns[i * pitch + bias_column()] = 1.0F;
      for (std::int64_t n = first; n < last; ++n) {
        for (std::int64_t p = 0; p < positions_; p += group) {
          const std::int64_t count = std::min(group, positions_ - p);
          few_channels_gather(shape_, p, count, width_, src + n * src_sample_, columns);
          few_channels_product_transposed(outputs_, count, width_,
                                    dst_grad + (n * positions_ + p) * outputs_, columns, sums);
        }
      }
    });
    const auto threads = static_cast<int>(pool_.divide(batch_, 1).parts);
    for (int thread = 0; thread < threads; ++thread) {
      add_sums(scratch_.block(thread), weights_grad, bias_grad);
    }
  }

 private:
  std::int64_t bias_column() const { return shape_.channels * taps_; }

  // Positions whose columns take so many bytes, in groups of about the same size.
  std::int64_t at_once(std::int64_t bytes) const {
    const auto row = few_channels_pitch(width_) * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t most = std::clamp<std::int64_t>(bytes / row, 1, positions_);
    const std::int64_t groups = (positions_ + most - 1) / most;
    return (positions_ + groups - 1) / groups;
  }

  // Weights lie as [output][channel][tap].
  void pack(const float* weights, float* panels) const {
    const std::int64_t panel = few_channels_panel();
    fill(width_ * outputs_, 0.0F, panels);
    for (std::int64_t output = 0; output < outputs_; ++output) {
      for (std::int64_t c = 0; c < shape_.channels; ++c) {
        for (std::int64_t tap = 0; tap < taps_; ++tap) {
          const std::int64_t column = tap * shape_.channels + c;
          panels[(column / panel * outputs_ + output) * panel + column % panel] = *weights++;
        }
      }
    }
  }

  void add_sums(const float* sums, float* weights_grad, float* bias_grad) const {
    for (std::int64_t output = 0; output < outputs_; ++output, sums += few_channels_pitch(width_)) {
      if (bias_grad != nullptr) bias_grad[output] += sums[bias_column()];
      if (weights_grad == nullptr) continue;
      for (std::int64_t c = 0; c < shape_.channels; ++c) {
        for (std::int64_t tap = 0; tap < taps_; ++tap) {
          *weights_grad++ += sums[tap * shape_.channels + c];
        }
      }
    }
  }

  std::int64_t batch_, outputs_;
  ThreadPool& pool_;
  Scratch& scratch_;
  FewChannelsShape shape_;
  std::int64_t taps_, positions_, src_sample_;
  std::int64_t width_;  // of a position's columns, with those that fill the last panel
};

}  // namespace

bool few_channels_serves(const ConvolutionShape& shape, ConvolutionPass pass,
                   const Context& context) {
  const bool fits = pass != ConvolutionPass::kForward && shape.kernel.size() == 2 &&
                    shape.groups == 1 && shape.src_layout.block == shape.channels &&
                    shape.dst_layout.block == shape.outputs &&
                    all_are(shape.dilation, 1) &&
                    context.precision == CpuPrecision::kFloat32;
  if (!fits) return false;
  const std::int64_t along =
      pass == ConvolutionPass::kBackwardData ? shape.channels : shape.outputs;
  const std::int64_t columns = shape.channels * count_of(shape.kernel);
  const std::int64_t lanes = cpu_isa() == CpuIsa::kAvx512 ? 16 : 8;
  return waste(along, lanes) > gain_min(pass) * waste(columns + 1, few_channels_panel());
}

std::unique_ptr<ConvolutionKernels> make_few_channels_kernels(const ConvolutionShape& shape,
                                                        const Context& context) {
  return std::make_unique<FewChannelsKernels>(shape, context);
}

}  // namespace speedo::cpu
