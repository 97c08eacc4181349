#include "gpu/convolution/convolution_product.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/round_up.hpp>

#include "gpu/convolution/finish_forward.hpp"
#include "gpu/elementwise/channels.hpp"
#include "gpu/reorder/reorder.hpp"

namespace speedo::gpu {
namespace {

// Gradients of more samples than fit here, and so in a device's cache, are summed one part after
// the other.
constexpr std::int64_t kPartialBytesWanted = std::int64_t{16} << 20U;
constexpr std::int64_t kAlignment = 256;
// Sums over fewer or other positions of plain arrays cost more than cuDNN takes: products load four
// elements at a time, and each sample's gradient is written before it is summed.
constexpr std::int64_t kSumPositionsMin = 64, kSumPositionsMultiple = 4;
// More products than that at once the library need not take.
constexpr std::int64_t kBatchMax = 65535;

bool all_are(const std::vector<std::int64_t>& values, std::int64_t wanted) {
  return std::all_of(values.begin(), values.end(),
                     [=](std::int64_t value) { return value == wanted; });
}

bool has_single_windows(const ConvolutionShape& shape) {
  return shape.groups == 1 && all_are(shape.kernel, 1) && all_are(shape.stride, 1) &&
         all_are(shape.pad, 0);
}

class ProductEngine final : public ConvolutionEngine {
 public:
  ProductEngine(const ConvolutionShape& shape, const ConvolutionContext& context)
      : shape_(shape),
        products_(context.products),
        positions_(count_of(shape.src_size)),
        is_last_(lies_last(shape.src_layout, shape.channels) &&
                 lies_last(shape.dst_layout, shape.outputs)),
        is_plain_(shape.src_layout.is_plain() && shape.dst_layout.is_plain()),
        type_(shape.dst_layout.type) {
    SPEEDO_ASSERT(!shape.transposed);
  }

  Result<void> reserve(ConvolutionPass pass) override {
    if (!serves(pass)) return Error{ErrorCode::kUnsupported, "not a product of the arrays"};
    const bool sums = pass == ConvolutionPass::kBackwardWeights && !is_last_;
    products_.workspace.reserve(behind_library() + (sums ? partial_bytes() : parameter_bytes()));
    return {};
  }
  std::string name(ConvolutionPass) const override { return "cublaslt gemm"; }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    if (is_last_) return forward_last(src, weights, bias, dst);
    gemm(products_,
         {Op::kNone, Op::kNone, {shape_.outputs, positions_, shape_.channels}, 1.0F, 0.0F},
         {shape_.batch, 0, src_step(), dst_step()}, weights, src, dst);
    finish_forward(products_.queue, shape_, bias, dst);
  }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    if (is_last_) {
      const auto own = in_type(weights, nullptr);
      if (!own) return;
      gemm(products_, {Op::kNone, Op::kNone, {rows(), shape_.channels, shape_.outputs}, 1.0F, 0.0F},
           GemmEpilogue{}, {dst_grad, own->weights, src_grad, type_, type_});
      return;
    }
    gemm(products_,
         {Op::kTranspose, Op::kNone, {shape_.channels, positions_, shape_.outputs}, 1.0F, 0.0F},
         {shape_.batch, 0, dst_step(), src_step()}, weights, dst_grad, src_grad);
  }

  void backward_weights(const float* src, const float* dst_grad, float* weights_grad) override {
    if (is_last_) {
      gemm(products_,
           {Op::kTranspose, Op::kNone, {shape_.outputs, shape_.channels, rows()}, 1.0F, 1.0F},
           GemmEpilogue{}, {dst_grad, src, weights_grad, type_, ElementType::kFloat32});
      return;
    }
    auto memory = products_.workspace.take(behind_library() + partial_bytes());
    if (!memory) return products_.queue.driver.fail(std::move(memory).error());
    auto* const partials =
        reinterpret_cast<float*>(static_cast<std::byte*>(memory->data) + behind_library());
    for (std::int64_t first = 0; first < shape_.batch; first += samples()) {
      const std::int64_t count = std::min(samples(), shape_.batch - first);
      gemm(products_,
           {Op::kNone, Op::kTranspose, {shape_.outputs, shape_.channels, positions_}, 1.0F, 0.0F},
           {count, dst_step(), src_step(), weight_count(shape_)}, dst_grad + first * dst_step(),
           src + first * src_step(), partials);
      sum_channels(products_.queue, {{count, weight_count(shape_), 1}, Layout{}}, nullptr, partials,
                   nullptr, weights_grad);
    }
  }

 private:
  bool lies_last(Layout layout, std::int64_t channels) const {
    return layout.block == channels || (layout.is_plain() && positions_ == 1);
  }
  bool serves(ConvolutionPass pass) const {
    if (!has_single_windows(shape_) || shape_.src_layout.type != type_) return false;
    if (is_last_) return true;
    if (!is_plain_ || shape_.batch > kBatchMax) return false;
    return pass != ConvolutionPass::kBackwardWeights ||
           (positions_ >= kSumPositionsMin && positions_ % kSumPositionsMultiple == 0);
  }

  void forward_last(const float* src, const float* weights, const float* bias, float* dst) {
    const bool rectifies = shape_.activation == UnaryOp{UnaryKind::kRelu} && bias != nullptr;
    const Backend::Gemm product{
        Op::kNone, Op::kTranspose, {rows(), shape_.outputs, shape_.channels}, 1.0F, 0.0F};
    const auto own = in_type(weights, bias);
    if (!own) return;
    gemm(products_, product, GemmEpilogue{own->bias, rectifies},
         {src, own->weights, dst, type_, type_});
    if (!rectifies) finish_forward(products_.queue, shape_, nullptr, dst);
  }

  // Weights and bias as the arrays' type has them, behind the library's working memory; nothing
  // after an error, which the driver keeps.
  struct Parameters {
    const float* weights;
    const float* bias;
  };
  std::optional<Parameters> in_type(const float* weights, const float* bias) {
    if (type_ == ElementType::kFloat32) return Parameters{weights, bias};
    auto memory = products_.workspace.take(behind_library() + parameter_bytes());
    if (!memory) {
      products_.queue.driver.fail(std::move(memory).error());
      return std::nullopt;
    }
    auto* const first = static_cast<std::byte*>(memory->data) + behind_library();
    auto* const own = reinterpret_cast<float*>(first);
    auto* const own_bias = reinterpret_cast<float*>(first + weight_bytes());
    const Layout to{1, type_};
    reorder(products_.queue, {1, weight_count(shape_), 1}, weights, Layout{}, own, to);
    if (bias == nullptr) return Parameters{own, nullptr};
    reorder(products_.queue, {1, shape_.outputs, 1}, bias, Layout{}, own_bias, to);
    return Parameters{own, own_bias};
  }
  std::size_t weight_bytes() const {
    return static_cast<std::size_t>(
        round_up(weight_count(shape_) * bytes_of_element(type_), kAlignment));
  }
  std::size_t parameter_bytes() const {
    if (type_ == ElementType::kFloat32) return 0;
    return weight_bytes() + static_cast<std::size_t>(shape_.outputs * bytes_of_element(type_));
  }

  std::int64_t rows() const { return shape_.batch * positions_; }
  std::int64_t src_step() const { return shape_.channels * positions_; }
  std::int64_t dst_step() const { return shape_.outputs * positions_; }

  std::size_t behind_library() const {
    return static_cast<std::size_t>(round_up(
        static_cast<std::int64_t>(products_.blas.workspace_bytes()), kAlignment));
  }
  // Samples whose gradients of the weights lie side by side there.
  std::int64_t samples() const {
    SPEEDO_ASSERT(weight_count(shape_) > 0);
    const auto bytes = weight_count(shape_) * static_cast<std::int64_t>(sizeof(float));
    return std::clamp<std::int64_t>(kPartialBytesWanted / bytes, 1, shape_.batch);
  }
  std::size_t partial_bytes() const {
    return static_cast<std::size_t>(samples() * weight_count(shape_)) * sizeof(float);
  }

  ConvolutionShape shape_;
  GemmContext products_;
  std::int64_t positions_;
  bool is_last_, is_plain_;
  ElementType type_;
};

}  // namespace

std::unique_ptr<ConvolutionEngine> make_product_engine(const ConvolutionShape& shape,
                                                       const ConvolutionContext& context) {
  return std::make_unique<ProductEngine>(shape, context);
}

}  // namespace speedo::gpu
