#include "cpu/convolution/convolution_whole_image.hpp"

#include "cpu/elementwise/channels.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/reorder/reorder.hpp"

namespace speedo::cpu {
namespace {

// Arrays that are not plain pass through plain copies of all samples.
class WholeImageKernels final : public ConvolutionKernels {
 public:
  WholeImageKernels(const ConvolutionShape& shape, const Context& context)
      : shape_(shape),
        pool_(context.pool),
        scratch_(context.scratch),
        window_(shape.channels * count_of(shape.src_size)),
        src_floats_(shape.src_layout.is_plain() ? 0 : aligned(shape.batch * window_)),
        dst_floats_(shape.dst_layout.is_plain() ? 0 : aligned(shape.batch * shape.outputs)) {}

  bool reserve(ConvolutionPass) override {
    scratch_.reserve(0, src_floats_ + dst_floats_);
    return true;
  }
  std::string name(ConvolutionPass) const override { return "inner product"; }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    float* const sums = shape_.dst_layout.is_plain() ? dst : dst_copy();
    gemm(pool_, {Op::kNone, Op::kTranspose, {shape_.batch, shape_.outputs, window_}, 1.0F, 0.0F},
         plain_src(src), weights, sums);
    if (bias != nullptr || shape_.activation) {
      scale_channels(pool_, plain_dst_view(), {nullptr, bias, shape_.activation}, sums, sums);
    }
    if (sums != dst) reorder(pool_, dst_array(shape_), sums, Layout{}, dst, shape_.dst_layout);
  }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    float* const grad = shape_.src_layout.is_plain() ? src_grad : src_copy();
    gemm(pool_, {Op::kNone, Op::kNone, {shape_.batch, window_, shape_.outputs}, 1.0F, 0.0F},
         plain_dst(dst_grad), weights, grad);
    if (grad == src_grad) return;
    reorder(pool_, src_array(shape_), grad, Layout{}, src_grad, shape_.src_layout);
  }

  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    const float* const grad = plain_dst(dst_grad);
    if (weights_grad != nullptr) {
      gemm(pool_, {Op::kTranspose, Op::kNone, {shape_.outputs, window_, shape_.batch}, 1.0F, 1.0F},
           grad, plain_src(src), weights_grad);
    }
    if (bias_grad == nullptr) return;
    sum_channels(pool_, plain_dst_view(), nullptr, grad, nullptr, bias_grad);
  }

 private:
  float* src_copy() { return scratch_.shared(); }
  float* dst_copy() { return scratch_.shared() + src_floats_; }
  ChannelView plain_dst_view() const { return {dst_array(shape_), Layout{}}; }

  const float* plain_src(const float* src) {
    return in_plain_order(&pool_, src_array(shape_), src, shape_.src_layout, src_copy());
  }
  const float* plain_dst(const float* dst) {
    return in_plain_order(&pool_, dst_array(shape_), dst, shape_.dst_layout, dst_copy());
  }

  const ConvolutionShape shape_;
  ThreadPool& pool_;
  Scratch& scratch_;
  const std::int64_t window_;  // elements of a sample
  const std::int64_t src_floats_, dst_floats_;
};

}  // namespace

bool whole_image_serves(const ConvolutionShape& shape, const Context& context) {
  return context.precision == CpuPrecision::kFloat32 && shape.groups == 1 &&
         shape.kernel == shape.src_size && all_are(shape.pad, 0);
}

std::unique_ptr<ConvolutionKernels> make_whole_image_kernels(const ConvolutionShape& shape,
                                                             const Context& context) {
  return std::make_unique<WholeImageKernels>(shape, context);
}

}  // namespace speedo::cpu
