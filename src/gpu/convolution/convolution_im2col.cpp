#include "gpu/convolution/convolution_im2col.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/round_up.hpp>

#include "gpu/convolution/finish_forward.hpp"
#include "gpu/convolution/im2col.hpp"
#include "gpu/reorder/reorder.hpp"

namespace speedo::gpu {
namespace {

// Matrices of more samples than fit here are made one after the other.
constexpr std::int64_t kMatrixBytesWanted = std::int64_t{64} << 20U;
constexpr std::int64_t kMatrixAlignment = 256;
constexpr std::int64_t kFloatBytes = sizeof(float);

class Im2colEngine final : public ConvolutionEngine {
 public:
  Im2colEngine(const ConvolutionShape& shape, const ConvolutionContext& context)
      : shape_(shape),
        products_(context.products),
        rows_(shape.channels / shape.groups * count_of(shape.kernel)),
        columns_(count_of(shape.dst_size)),
        group_outputs_(shape.outputs / shape.groups) {
    const std::int64_t sample_bytes = std::max<std::int64_t>(1, matrix_step()) * kFloatBytes;
    samples_ = std::clamp<std::int64_t>(kMatrixBytesWanted / sample_bytes, 1,
                                        std::max<std::int64_t>(1, shape.batch));
    const auto behind = [&](std::int64_t bytes, std::int64_t sample_floats) {
      return round_up(bytes + samples_ * sample_floats * kFloatBytes, kMatrixAlignment);
    };
    matrices_at_ = behind(static_cast<std::int64_t>(products_.blas.workspace_bytes()), 0);
    src_at_ = behind(matrices_at_, matrix_step());
    dst_at_ = behind(src_at_, shape.src_layout.is_plain() ? 0 : src_step());
    bytes_ = static_cast<std::size_t>(
        behind(dst_at_, shape.dst_layout.is_plain() ? 0 : dst_step()));
  }

  Result<void> reserve(ConvolutionPass) override {
    products_.workspace.reserve(bytes_);
    return {};
  }
  std::string name(ConvolutionPass) const override { return "im2col, cublaslt gemm"; }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    for_each_part([&](const Part& part) {
      unfold(products_.queue, part.shape, plain_src(part, src), part.matrices);
      float* const result = place_of(dst_here(part), dst, part.dst_copy);
      for (std::int64_t g = 0; g < shape_.groups; ++g) {
        gemm(products_, {Op::kNone, Op::kNone, {group_outputs_, columns_, rows_}, 1.0F, 0.0F},
             {part.shape.batch, 0, matrix_step(), dst_step()}, weights + g * group_weights(),
             part.matrices + g * group_matrix(), result + g * group_dst());
      }
      put_back(dst_here(part), result, dst);
    });
    finish_forward(products_.queue, shape_, bias, dst);
  }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    for_each_part([&](const Part& part) {
      const float* const grad = plain_dst(part, dst_grad);
      for (std::int64_t g = 0; g < shape_.groups; ++g) {
        gemm(products_, {Op::kTranspose, Op::kNone, {rows_, columns_, group_outputs_}, 1.0F, 0.0F},
             {part.shape.batch, 0, dst_step(), matrix_step()}, weights + g * group_weights(),
             grad + g * group_dst(), part.matrices + g * group_matrix());
      }
      float* const result = place_of(src_here(part), src_grad, part.src_copy);
      fold(products_.queue, part.shape, part.matrices, result);
      put_back(src_here(part), result, src_grad);
    });
  }

  // One sample after the other, as each adds to the same.
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad) override {
    for_each_part([&](const Part& part) {
      unfold(products_.queue, part.shape, plain_src(part, src), part.matrices);
      const float* const grad = plain_dst(part, dst_grad);
      for (std::int64_t i = 0; i < part.shape.batch; ++i) {
        for (std::int64_t g = 0; g < shape_.groups; ++g) {
          gemm(products_,
               {Op::kNone, Op::kTranspose, {group_outputs_, rows_, columns_}, 1.0F, 1.0F},
               grad + i * dst_step() + g * group_dst(),
               part.matrices + i * matrix_step() + g * group_matrix(),
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

  // Some samples, with memory for their matrices and for copies of arrays that are not plain.
  struct Part {
    std::int64_t first;
    ConvolutionShape shape;
    float* matrices;
    float* src_copy;
    float* dst_copy;
  };
  // Where a part's samples lie in an array.
  struct Here {
    ArrayShape array;
    Layout layout;
    std::int64_t offset;
  };
  static Here here(const Part& part, const ArrayShape& array, Layout layout) {
    return {array, layout, part.first * ArrayShape{1, array.channels, array.spatial}.storage_count(
                                            layout)};
  }
  static Here src_here(const Part& part) {
    return here(part, src_array(part.shape), part.shape.src_layout);
  }
  static Here dst_here(const Part& part) {
    return here(part, dst_array(part.shape), part.shape.dst_layout);
  }

  const float* plain(const Here& from, const float* array, float* copy) const {
    if (from.layout.is_plain()) return array + from.offset;
    const float* const first = element_at(array, from.offset, from.layout.type);
    reorder(products_.queue, from.array, first, from.layout, copy, Layout{});
    return copy;
  }
  const float* plain_src(const Part& part, const float* src) const {
    return plain(src_here(part), src, part.src_copy);
  }
  const float* plain_dst(const Part& part, const float* dst) const {
    return plain(dst_here(part), dst, part.dst_copy);
  }
  // Where results are computed: in the array itself if it is plain.
  static float* place_of(const Here& to, float* array, float* copy) {
    return to.layout.is_plain() ? array + to.offset : copy;
  }
  void put_back(const Here& to, const float* result, float* array) const {
    if (to.layout.is_plain()) return;
    float* const first = element_at(array, to.offset, to.layout.type);
    reorder(products_.queue, to.array, result, Layout{}, first, to.layout);
  }

  template <class Body>
  void for_each_part(const Body& body) {
    auto memory = products_.workspace.take(bytes_);
    if (!memory) return products_.queue.driver.fail(std::move(memory).error());
    const auto at = [&](std::int64_t offset) {
      return reinterpret_cast<float*>(static_cast<std::byte*>(memory->data) + offset);
    };
    Part part{0, shape_, at(matrices_at_), at(src_at_), at(dst_at_)};
    for (; part.first < shape_.batch; part.first += samples_) {
      part.shape.batch = std::min(samples_, shape_.batch - part.first);
      body(part);
    }
  }

  ConvolutionShape shape_;
  GemmContext products_;
  std::int64_t rows_, columns_, group_outputs_;  // of one group's matrix, and of its product
  std::int64_t samples_ = 1;
  std::int64_t matrices_at_ = 0, src_at_ = 0, dst_at_ = 0;  // bytes behind those of products
  std::size_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<ConvolutionEngine> make_im2col_engine(const ConvolutionShape& shape,
                                                      const ConvolutionContext& context) {
  return std::make_unique<Im2colEngine>(shape, context);
}

}  // namespace speedo::gpu
