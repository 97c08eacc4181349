#include "gpu/convolution/convolution_cudnn.hpp"

#include <array>
#include <optional>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/round_up.hpp>

#include "gpu/convolution/finish_forward.hpp"
#include "gpu/reorder/reorder.hpp"

namespace speedo::gpu {
namespace {

constexpr std::int64_t kWeightAlignment = 256;

class CudnnEngine final : public ConvolutionEngine {
 public:
  CudnnEngine(const ConvolutionShape& shape, const ConvolutionContext& context)
      : shape_(shape),
        context_(context),
        fuses_(shape.dst_layout.type == ElementType::kFloat32) {}

  Result<void> reserve(ConvolutionPass pass) override {
    driver().bind_thread();
    SPEEDO_ASSIGN(passes_[index(pass)], context_.dnn.plan(shape_, pass));
    context_.products.workspace.reserve(bytes_of(of(pass)));
    return {};
  }
  std::string name(ConvolutionPass pass) const override { return of(pass).name(); }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    const bool may_fuse = bias != nullptr && is_rectified() && fuses_;
    if (may_fuse && run_with_relu({src, weights, dst}, bias)) return;
    run(ConvolutionPass::kForward, {src, weights, dst});
    finish_forward(queue(), shape_, bias, dst);
  }
  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    run(ConvolutionPass::kBackwardData, {src_grad, weights, dst_grad});
  }
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad) override {
    const DnnPass& pass = of(ConvolutionPass::kBackwardWeights);
    const float* const own = run(ConvolutionPass::kBackwardWeights, {src, weights_grad, dst_grad});
    if (own == nullptr || own == weights_grad) return;
    if (pass.adds_to_weights()) {
      reorder(queue(), weight_array(), own, pass.weight_layout(), weights_grad, Layout{});
    } else {
      add_reordered(queue(), weight_array(), own, pass.weight_layout(), weights_grad);
    }
  }

 private:
  static std::size_t index(ConvolutionPass pass) { return static_cast<std::size_t>(pass); }
  DnnPass& of(ConvolutionPass pass) const {
    SPEEDO_ASSERT(passes_[index(pass)] != nullptr);
    return *passes_[index(pass)];
  }
  Queue& queue() const { return context_.products.queue; }
  Driver& driver() const { return context_.products.queue.driver; }
  bool is_rectified() const { return shape_.activation == UnaryOp{UnaryKind::kRelu}; }

  // Of each output.
  ArrayShape weight_array() const {
    return {shape_.outputs, shape_.channels / shape_.groups, count_of(shape_.kernel)};
  }
  // The library's working memory, and behind it the weights in its order.
  static std::size_t weights_at(const DnnPass& pass) {
    return static_cast<std::size_t>(
        round_up(static_cast<std::int64_t>(pass.workspace_bytes()), kWeightAlignment));
  }
  std::size_t bytes_of(const DnnPass& pass) const {
    if (pass.weight_layout().is_plain()) return pass.workspace_bytes();
    const std::int64_t element = bytes_of_element(pass.weight_layout().type);
    return weights_at(pass) + static_cast<std::size_t>(weight_count(shape_) * element);
  }

  // Memory for the library, and the weights in its order, copied unless they are null; nothing
  // after an error, which the driver keeps.
  struct Prepared {
    WorkMemory memory;
    const float* weights;
  };
  std::optional<Prepared> prepare(const DnnPass& pass, const float* weights) {
    driver().bind_thread();
    auto memory = context_.products.workspace.take(bytes_of(pass));
    if (!memory) {
      driver().fail(std::move(memory).error());
      return std::nullopt;
    }
    Prepared prepared{{memory->data, pass.workspace_bytes()}, weights};
    if (pass.weight_layout().is_plain()) return prepared;
    auto* const own =
        reinterpret_cast<float*>(static_cast<std::byte*>(memory->data) + weights_at(pass));
    if (weights != nullptr) {
      reorder(queue(), weight_array(), weights, Layout{}, own, pass.weight_layout());
    }
    prepared.weights = own;
    return prepared;
  }

  // The weights that the library was given; null after an error.
  const float* run(ConvolutionPass which, DnnArrays arrays) {
    DnnPass& pass = of(which);
    const bool overwrites = which == ConvolutionPass::kBackwardWeights && !pass.adds_to_weights();
    const auto prepared = prepare(pass, overwrites ? nullptr : arrays.weights);
    if (!prepared) return nullptr;
    arrays.weights = prepared->weights;
    auto queued = pass.run(arrays, prepared->memory);
    if (queued) return arrays.weights;
    driver().fail(std::move(queued).error());
    return nullptr;
  }

  bool run_with_relu(DnnArrays arrays, const float* bias) {
    DnnPass& pass = of(ConvolutionPass::kForward);
    const auto prepared = prepare(pass, arrays.weights);
    if (!prepared) return true;
    arrays.weights = prepared->weights;
    auto fused = pass.run_with_relu(arrays, bias, prepared->memory);
    if (fused) return fuses_ = *fused;
    driver().fail(std::move(fused).error());
    return true;
  }

  ConvolutionShape shape_;
  ConvolutionContext context_;
  bool fuses_;  // bias and ReLU: of floats, until the library says no
  std::array<std::unique_ptr<DnnPass>, kConvolutionPasses.size()> passes_;
};

}  // namespace

std::unique_ptr<ConvolutionEngine> make_cudnn_engine(const ConvolutionShape& shape,
                                                     const ConvolutionContext& context) {
  return std::make_unique<CudnnEngine>(shape, context);
}

}  // namespace speedo::gpu
