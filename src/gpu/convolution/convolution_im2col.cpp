#include "gpu/convolution/convolution_im2col.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/round_up.hpp>

#include "gpu/convolution/im2col.hpp"
#include "gpu/elementwise/channels.hpp"

namespace speedo::gpu {
namespace {

// Matrices of more samples than fit here are made one after the other.
constexpr std::int64_t kMatrixBytesWanted = std::int64_t{64} << 20U;
constexpr std::int64_t kMatrixAlignment = 256;

class Im2colKernels final : public ConvolutionKernels {
 public:
  Im2colKernels(const ConvolutionShape& shape, const ConvolutionContext& context)
      : shape_(shape),
        products_(context.products),
        rows_(shape.channels / shape.groups * count_of(shape.kernel)),
        columns_(count_of(shape.dst_size)),
        group_outputs_(shape.outputs / shape.groups) {
    const std::int64_t sample_bytes =
        std::max<std::int64_t>(1, matrix_step()) * static_cast<std::int64_t>(sizeof(float));
    samples_ = std::clamp<std::int64_t>(kMatrixBytesWanted / sample_bytes, 1,
                                        std::max<std::int64_t>(1, shape.batch));
    matrices_at_ = round_up(static_cast<std::int64_t>(products_.blas.workspace_bytes()),
                            kMatrixAlignment);
    bytes_ = static_cast<std::size_t>(matrices_at_ + samples_ * sample_bytes);
  }

  Result<void> reserve(ConvolutionPass) override {
    if (!shape_.src_layout.is_plain() || !shape_.dst_layout.is_plain()) {
      return Error{ErrorCode::kUnsupported, "im2col knows plain arrays only"};
    }
    products_.workspace.reserve(bytes_);
    return {};
  }
  std::string name(ConvolutionPass) const override { return "im2col, cublaslt gemm"; }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    for_each_part([&](std::int64_t first, const ConvolutionShape& part, float* matrices) {
      unfold(products_.queue, part, src + first * src_step(), matrices);
      for (std::int64_t g = 0; g < shape_.groups; ++g) {
        gemm(products_, {Op::kNone, Op::kNone, {group_outputs_, columns_, rows_}, 1.0F, 0.0F},
             {part.batch, 0, matrix_step(), dst_step()}, weights + g * group_weights(),
             matrices + g * group_matrix(), dst + first * dst_step() + g * group_dst());
      }
    });
    if (bias == nullptr && !shape_.activation) return;
    scale_channels(products_.queue, {dst_array(shape_), shape_.dst_layout},
                   {nullptr, bias, shape_.activation}, dst, dst);
  }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    for_each_part([&](std::int64_t first, const ConvolutionShape& part, float* matrices) {
      for (std::int64_t g = 0; g < shape_.groups; ++g) {
        gemm(products_, {Op::kTranspose, Op::kNone, {rows_, columns_, group_outputs_}, 1.0F, 0.0F},
             {part.batch, 0, dst_step(), matrix_step()}, weights + g * group_weights(),
             dst_grad + first * dst_step() + g * group_dst(), matrices + g * group_matrix());
      }
      fold(products_.queue, part, matrices, src_grad + first * src_step());
    });
  }

  // One sample after the other, as each adds to the same.
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad) override {
    for_each_part([&](std::int64_t first, const ConvolutionShape& part, float* matrices) {
      unfold(products_.queue, part, src + first * src_step(), matrices);
      for (std::int64_t i = 0; i < part.batch; ++i) {
        for (std::int64_t g = 0; g < shape_.groups; ++g) {
          gemm(products_,
               {Op::kNone, Op::kTranspose, {group_outputs_, rows_, columns_}, 1.0F, 1.0F},
               dst_grad + (first + i) * dst_step() + g * group_dst(),
               matrices + i * matrix_step() + g * group_matrix(),
               weights_grad + g * group_weights());
        }
      }
    });
  }

 private:
  std::int64_t src_step() const { return shape_.channels * count_of(shape_.src_size); }
  std::int64_t dst_step() const { return shape_.outputs * columns_; }
  std::int64_t group_dst() const { return group_outputs_ * columns_; }
  std::int64_t group_matrix() const { return rows_ * columns_; }
  std::int64_t matrix_step() const { return shape_.groups * group_matrix(); }
  std::int64_t group_weights() const { return group_outputs_ * rows_; }

  // Calls body(first sample, the convolution of these samples, their matrices).
  template <class Body>
  void for_each_part(const Body& body) {
    auto memory = products_.workspace.take(bytes_);
    if (!memory) return products_.queue.driver.fail(std::move(memory).error());
    auto* matrices = reinterpret_cast<float*>(static_cast<std::byte*>(memory->data) + matrices_at_);
    ConvolutionShape part = shape_;
    for (std::int64_t first = 0; first < shape_.batch; first += samples_) {
      part.batch = std::min(samples_, shape_.batch - first);
      body(first, part, matrices);
    }
  }

  ConvolutionShape shape_;
  GemmContext products_;
  std::int64_t rows_, columns_, group_outputs_;  // of one group's matrix, and of its product
  std::int64_t samples_ = 1, matrices_at_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<ConvolutionKernels> make_im2col_kernels(const ConvolutionShape& shape,
                                                        const ConvolutionContext& context) {
  return std::make_unique<Im2colKernels>(shape, context);
}

}  // namespace speedo::gpu
