#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <speedo/backend/device.hpp>
#include <speedo/core/layer.hpp>
#include <speedo/core/tensor.hpp>

namespace speedo {

// Data and HDF5Data: tops are the batches of a feed. What the feed reads is not this layer's
// business. Where the device has memory of its own, the next batch is copied there while this one
// is computed with, if it has been read by then and all batches have one shape.
class FeedLayer : public Layer {
 public:
  using Layer::Layer;
  ~FeedLayer() override;

  LayerArity arity() const override;
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  std::int64_t workspace_bytes() const override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}
  bool brings_data() const override { return true; }
  void set_batch_span(const BatchSpan& span) override;
  bool batches_vary() const override { return feed_->shapes_vary(); }
  Result<bool> next_batch_differs(Tensors tops) override;

 private:
  void read_ahead();
  Result<void> forward_staged(Tensors tops);
  Result<void> stage(std::uint64_t batch);

  std::unique_ptr<BatchFeed> feed_;
  std::vector<Shape> shapes_;  // of the batch that is read next, as far as is known
  BatchSpan span_;
  std::uint64_t step_ = 0;  // batches consumed since set_batch_span()
  // A batch on the device, one for each top; none where the host's memory is the device's, or
  // shapes vary.
  std::vector<Tensor> slots_;
  std::optional<std::uint64_t> staged_;  // the batch that is there, or on its way
  StreamEvent there_;                    // that all of the last one is
  StreamEvent copied_;                   // that the slots may be overwritten
};

}  // namespace speedo
