#include "gpu/convolution/convolution_cudnn.hpp"

#include <array>
#include <utility>

#include <speedo/base/assert.hpp>

#include "gpu/elementwise/channels.hpp"

namespace speedo::gpu {
namespace {

class CudnnKernels final : public ConvolutionKernels {
 public:
  CudnnKernels(const ConvolutionShape& shape, const ConvolutionContext& context)
      : shape_(shape), context_(context) {}

  Result<void> reserve(ConvolutionPass pass) override {
    driver().bind_thread();
    SPEEDO_ASSIGN(passes_[index(pass)], context_.dnn.plan(shape_, pass));
    context_.products.workspace.reserve(of(pass).workspace_bytes());
    return {};
  }
  std::string name(ConvolutionPass pass) const override { return of(pass).name(); }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    if (bias != nullptr && is_rectified() && run_with_relu({src, weights, dst}, bias)) return;
    run(ConvolutionPass::kForward, {src, weights, dst});
    if (bias == nullptr && !shape_.activation) return;
    scale_channels(context_.products.queue, {dst_array(shape_), shape_.dst_layout},
                   {nullptr, bias, shape_.activation}, dst, dst);
  }
  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    run(ConvolutionPass::kBackwardData, {src_grad, weights, dst_grad});
  }
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad) override {
    run(ConvolutionPass::kBackwardWeights, {src, weights_grad, dst_grad});
  }

 private:
  static std::size_t index(ConvolutionPass pass) { return static_cast<std::size_t>(pass); }
  DnnPass& of(ConvolutionPass pass) const {
    SPEEDO_ASSERT(passes_[index(pass)] != nullptr);
    return *passes_[index(pass)];
  }
  Driver& driver() const { return context_.products.queue.driver; }
  bool is_rectified() const { return shape_.activation == UnaryOp{UnaryKind::kRelu}; }

  // Nothing after an error, which the driver keeps.
  std::optional<WorkMemory> memory_of(const DnnPass& pass) {
    driver().bind_thread();
    auto memory = context_.products.workspace.take(pass.workspace_bytes());
    if (memory) return *memory;
    driver().fail(std::move(memory).error());
    return std::nullopt;
  }

  void run(ConvolutionPass which, const DnnArrays& arrays) {
    DnnPass& pass = of(which);
    const auto memory = memory_of(pass);
    if (!memory) return;
    if (auto queued = pass.run(arrays, *memory); !queued) driver().fail(std::move(queued).error());
  }

  bool run_with_relu(const DnnArrays& arrays, const float* bias) {
    DnnPass& pass = of(ConvolutionPass::kForward);
    const auto memory = memory_of(pass);
    if (!memory) return true;
    auto fused = pass.run_with_relu(arrays, bias, *memory);
    if (fused) return *fused;
    driver().fail(std::move(fused).error());
    return true;
  }

  ConvolutionShape shape_;
  ConvolutionContext context_;
  std::array<std::unique_ptr<DnnPass>, kConvolutionPasses.size()> passes_;
};

}  // namespace

std::unique_ptr<ConvolutionKernels> make_cudnn_kernels(const ConvolutionShape& shape,
                                                       const ConvolutionContext& context) {
  return std::make_unique<CudnnKernels>(shape, context);
}

}  // namespace speedo::gpu
