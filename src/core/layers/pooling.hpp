#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

#include "core/layers/support.hpp"

namespace speedo {

// Maximum or mean over windows of an N x C x H x W bottom, or an element of each window that is
// drawn (STOCHASTIC). With MAX, the optional top 1 is the index within its plane of each maximum.
class PoolingLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, 1, 1, 2}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  LayoutRule layout_rule() const override;
  bool takes_bfloat16() const override { return true; }
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool keeps_top() const override { return reads_.dst; }
  bool backward_reads_bottom(int) const override { return reads_.src; }
  bool backward_reads_top(int top) const override {
    return top == 0 && reads_.dst;
  }
  OperationInfo info() const override;
  std::int64_t workspace_bytes() const override { return bytes_of(winners_); }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Result<void> read_options(bool has_two_tops);
  Result<void> reshape_stochastic(const Shape& top);
  void forward_stochastic(const float* src, float* dst);
  // Whether stochastic pooling draws.
  bool samples() const { return context().phase == Phase::kTrain; }

  PoolingShape shape_;
  BackwardReads reads_;
  bool has_mask_ = false, is_stochastic_ = false;
  Tensor winners_{Shape{0}};  // of stochastic pooling
  std::unique_ptr<Pooling> operation_;
};

// How many windows Caffe's Pooling makes along one axis: rounding up by default, and if `clips` the
// last window is dropped where it would start beyond the image. Caffe clips both axes if either has
// padding. Error: kConfig if no window fits, or if the last one lies wholly outside the image,
// which Caffe turns into garbage.
Result<std::int64_t> pooled_size(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                 std::int64_t pad, bool round_up, bool clips);

}  // namespace speedo
