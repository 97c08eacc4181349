#pragma once

#include <cstdint>
#include <span>

#include <speedo/core/layer.hpp>

namespace speedo {

// Batches of arrays that whoever uses the net has given (Net::give_arrays()): items of channels x
// height x width and a label each. Batch b is the b-th batch_size items, from the beginning again
// after the last.
class MemoryDataLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {0, 0, 2, 2}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}
  void set_batch_span(const BatchSpan& span) override;
  Result<void> give_arrays(std::span<const float> data, std::span<const float> labels) override;

 private:
  Shape shape_{0, 0, 0, 0};  // of a batch
  std::span<const float> data_, labels_;
  BatchSpan span_;
  std::uint64_t step_ = 0;  // batches consumed since set_batch_span()
};

}  // namespace speedo
