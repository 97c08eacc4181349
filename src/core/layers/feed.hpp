#pragma once

#include <cstdint>
#include <memory>

#include <speedo/core/layer.hpp>

namespace speedo {

// Data and HDF5Data: tops are the batches of a feed. What the feed reads is not this layer's
// business.
class FeedLayer : public Layer {
 public:
  using Layer::Layer;

  LayerArity arity() const override;
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}
  void set_batch_span(const BatchSpan& span) override;

 private:
  void read_ahead();

  std::unique_ptr<BatchFeed> feed_;
  BatchSpan span_;
  std::uint64_t step_ = 0;  // batches consumed since set_batch_span()
};

}  // namespace speedo
