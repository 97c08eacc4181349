#include "cpu/convolution/convolution_im2col.hpp"

#include <algorithm>

#include "cpu/convolution/im2col.hpp"
#include "cpu/elementwise/elementwise.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/isa.hpp"
#include "cpu/reorder/reorder.hpp"

namespace speedo::cpu {
namespace {

// A product of fewer columns than this mostly reads its weights, so samples are joined up to it.
// From 49 columns on joining gained nothing, and past 500 it lost a fifth to the caches.
constexpr std::int64_t kColumnsWanted = 64;

// Where im2col_excels(): 1.2 to 2.7 times as fast, from 2 MiB of weights on and up to 14 x 14
// positions.
constexpr std::int64_t kLargeWeights = 1 << 19;
constexpr std::int64_t kFewPositions = 14 * 14;

class Im2colKernels final : public ConvolutionKernels {
 public:
  Im2colKernels(const ConvolutionShape& shape, const Context& context)
      : shape_(shape), pool_(context.pool), scratch_(context.scratch), im2col_(shape) {
    group_outputs_ = shape.outputs / shape.groups;
    src_sample_ = shape.groups * im2col_.src_count();
    dst_sample_ = shape.outputs * im2col_.columns();
    const std::int64_t columns = std::max<std::int64_t>(im2col_.columns(), 1);
    const std::int64_t share = (shape.batch + pool_.size() - 1) / pool_.size();
    samples_ =
        std::clamp<std::int64_t>(kColumnsWanted / columns, 1, std::max<std::int64_t>(share, 1));
    matrix_floats_ = aligned(im2col_.rows() * samples_ * columns);
    gather_floats_ = aligned(group_outputs_ * samples_ * columns);
    src_floats_ = shape.src_layout.is_plain() ? 0 : aligned(samples_ * src_sample_);
    dst_floats_ = shape.dst_layout.is_plain() ? 0 : aligned(samples_ * dst_sample_);
    weights_floats_ = aligned(weight_count(shape));
  }

  bool reserve(ConvolutionPass pass) override {
    const bool sums = pass == ConvolutionPass::kBackwardWeights;
    scratch_.reserve(matrix_floats_ + gather_floats_ + src_floats_ + dst_floats_ +
                     (sums ? weights_floats_ + aligned(shape_.outputs) : 0));
    return true;
  }
  std::string name(ConvolutionPass) const override { return "openblas im2col"; }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    for_each_block([&](const Block& block) { forward_block(block, src, weights, bias, dst); });
  }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    for_each_block(
        [&](const Block& block) { backward_data_block(block, dst_grad, weights, src_grad); });
  }

  // Each thread sums in an array of its own; they are added in the order of the threads, so that
  // the same thread count always gives the same sum.
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    pool_.split(pool_.size(), 1, [&](std::int64_t, std::int64_t, int thread) {
      fill(weights_floats_ + aligned(shape_.outputs), 0.0F, weights_sums(thread));
    });
    for_each_block([&](const Block& block) {
      const float* grad = plain_dst(block, dst_grad);
      if (weights_grad != nullptr) add_weights_grad(block, plain_src(block, src), grad);
      if (bias_grad != nullptr) add_bias_grad(block, grad);
    });
    for (int thread = 0; thread < pool_.size(); ++thread) {
      const float* sums = weights_sums(thread);
      if (weights_grad != nullptr) axpby(weight_count(shape_), 1.0F, sums, 1.0F, weights_grad);
      if (bias_grad != nullptr)
        axpby(shape_.outputs, 1.0F, sums + weights_floats_, 1.0F, bias_grad);
    }
  }

 private:
  // Samples that one thread computes together.
  struct Block {
    std::int64_t first, count;
    int thread;
  };

  template <class Body>
  void for_each_block(const Body& body) {
    pool_.split(shape_.batch, samples_, [&](std::int64_t first, std::int64_t last, int thread) {
      for (std::int64_t b = first; b < last; b += samples_) {
        body(Block{b, std::min(samples_, last - b), thread});
      }
    });
  }

  float* matrix(int thread) { return scratch_.block(thread); }
  float* gather(int thread) { return matrix(thread) + matrix_floats_; }
  float* src_copy(int thread) { return gather(thread) + gather_floats_; }
  float* dst_copy(int thread) { return src_copy(thread) + src_floats_; }
  float* weights_sums(int thread) { return dst_copy(thread) + dst_floats_; }
  std::int64_t width(const Block& block) const { return block.count * im2col_.columns(); }
  std::int64_t group_weights() const { return group_outputs_ * im2col_.rows(); }

  ArrayShape block_array(const Block& block, ArrayShape all) const {
    return {block.count, all.channels, all.spatial};
  }
  template <class Float>
  Float* first_sample(const Block& block, Float* array, ArrayShape all, Layout layout) const {
    return array + block.first * layout.channels(all.channels) * all.spatial;
  }

  // The block's samples in plain order.
  const float* plain(const Block& block, const float* array, ArrayShape all, Layout layout,
                     float* copy) const {
    return in_plain_order(nullptr, block_array(block, all), first_sample(block, array, all, layout),
                          layout, copy);
  }
  const float* plain_src(const Block& block, const float* src) {
    return plain(block, src, src_array(shape_), shape_.src_layout, src_copy(block.thread));
  }
  const float* plain_dst(const Block& block, const float* dst) {
    return plain(block, dst, dst_array(shape_), shape_.dst_layout, dst_copy(block.thread));
  }

  // The window matrix of one group of the block's samples, side by side.
  GemmMatrix unfold(const Block& block, std::int64_t group, const float* src) {
    const float* first = src + group * im2col_.src_count();
    if (block.count == 1 && im2col_.is_identity()) return {first, im2col_.columns()};
    float* target = matrix(block.thread);
    for (std::int64_t i = 0; i < block.count; ++i) {
      im2col_.unfold(first + i * src_sample_, target + i * im2col_.columns(), width(block));
    }
    return {target, width(block)};
  }

  // One group of the block's output gradients, side by side.
  GemmMatrix gather_grad(const Block& block, std::int64_t group, const float* dst_grad) {
    const std::int64_t columns = im2col_.columns();
    const float* first = dst_grad + group * group_outputs_ * columns;
    if (block.count == 1) return {first, columns};
    float* target = gather(block.thread);
    for (std::int64_t o = 0; o < group_outputs_; ++o) {
      for (std::int64_t i = 0; i < block.count; ++i) {
        std::copy_n(first + i * dst_sample_ + o * columns, columns,
                    target + o * width(block) + i * columns);
      }
    }
    return {target, width(block)};
  }

  void forward_block(const Block& block, const float* src, const float* weights, const float* bias,
                     float* dst) {
    const std::int64_t columns = im2col_.columns();
    const float* source = plain_src(block, src);
    float* real = first_sample(block, dst, dst_array(shape_), shape_.dst_layout);
    float* result = shape_.dst_layout.is_plain() ? real : dst_copy(block.thread);
    for (std::int64_t g = 0; g < shape_.groups; ++g) {
      const GemmMatrix windows = unfold(block, g, source);
      float* target = result + g * group_outputs_ * columns;
      float* product = block.count == 1 ? target : gather(block.thread);
      gemm({Op::kNone, Op::kNone, {group_outputs_, width(block), im2col_.rows()}, 1.0F, 0.0F},
           {weights + g * group_weights(), im2col_.rows()}, windows, {product, width(block)});
      for (std::int64_t o = 0; o < group_outputs_; ++o) {
        float* row = product + o * width(block);
        if (bias != nullptr)
          map(affine(1.0F, bias[g * group_outputs_ + o]), width(block), row, row);
        if (shape_.activation) map(*shape_.activation, width(block), row, row);
        if (block.count == 1) continue;
        for (std::int64_t i = 0; i < block.count; ++i) {
          std::copy_n(row + i * columns, columns, target + i * dst_sample_ + o * columns);
        }
      }
    }
    if (result != real) {
      reorder(block_array(block, dst_array(shape_)), result, Layout{}, real, shape_.dst_layout);
    }
  }

  void backward_data_block(const Block& block, const float* dst_grad, const float* weights,
                           float* src_grad) {
    const std::int64_t columns = im2col_.columns();
    const float* source = plain_dst(block, dst_grad);
    float* real = first_sample(block, src_grad, src_array(shape_), shape_.src_layout);
    float* result = shape_.src_layout.is_plain() ? real : src_copy(block.thread);
    for (std::int64_t g = 0; g < shape_.groups; ++g) {
      const GemmMatrix grad = gather_grad(block, g, source);
      float* target = result + g * im2col_.src_count();
      const bool direct = block.count == 1 && im2col_.is_identity();
      float* windows = direct ? target : matrix(block.thread);
      gemm({Op::kTranspose, Op::kNone, {im2col_.rows(), width(block), group_outputs_}, 1.0F, 0.0F},
           {weights + g * group_weights(), im2col_.rows()}, grad, {windows, width(block)});
      if (direct) continue;
      for (std::int64_t i = 0; i < block.count; ++i) {
        fill(im2col_.src_count(), 0.0F, target + i * src_sample_);
        im2col_.fold(windows + i * columns, width(block), target + i * src_sample_);
      }
    }
    if (result != real) {
      reorder(block_array(block, src_array(shape_)), result, Layout{}, real, shape_.src_layout);
    }
  }

  void add_weights_grad(const Block& block, const float* src, const float* dst_grad) {
    for (std::int64_t g = 0; g < shape_.groups; ++g) {
      const GemmMatrix windows = unfold(block, g, src);
      const GemmMatrix grad = gather_grad(block, g, dst_grad);
      gemm({Op::kNone, Op::kTranspose, {group_outputs_, im2col_.rows(), width(block)}, 1.0F, 1.0F},
           grad, windows, {weights_sums(block.thread) + g * group_weights(), im2col_.rows()});
    }
  }

  void add_bias_grad(const Block& block, const float* dst_grad) {
    float* sums = weights_sums(block.thread) + weights_floats_;
    const std::int64_t columns = im2col_.columns();
    for (std::int64_t i = 0; i < block.count; ++i) {
      const float* grad = dst_grad + i * dst_sample_;
      for (std::int64_t o = 0; o < shape_.outputs; ++o) sums[o] += sum(columns, grad + o * columns);
    }
  }

  ConvolutionShape shape_;
  ThreadPool& pool_;
  Scratch& scratch_;
  Im2col im2col_;
  std::int64_t group_outputs_ = 0, src_sample_ = 0, dst_sample_ = 0;
  std::int64_t samples_ = 1;  // per matrix product
  std::int64_t matrix_floats_ = 0, gather_floats_ = 0, src_floats_ = 0, dst_floats_ = 0,
               weights_floats_ = 0;
};

}  // namespace

bool im2col_excels(const ConvolutionShape& shape, ConvolutionPass pass) {
  return pass == ConvolutionPass::kBackwardWeights && cpu_isa() == CpuIsa::kAvx2 &&
         weight_count(shape) / shape.groups >= kLargeWeights &&
         count_of(shape.dst_size) <= kFewPositions;
}

std::unique_ptr<ConvolutionKernels> make_im2col_kernels(const ConvolutionShape& shape,
                                                        const Context& context) {
  return std::make_unique<Im2colKernels>(shape, context);
}

}  // namespace speedo::cpu
