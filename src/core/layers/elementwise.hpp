#pragma once

#include <speedo/backend/unary_op.hpp>
#include <speedo/core/layer.hpp>

#include "core/layers/bottom_copy.hpp"

namespace speedo {

// top = f(bottom) for each element, the base of layers that are nothing else. They say which f by
// read_op(). May work in place.
class ElementwiseLayer : public Layer {
 public:
  using Layer::Layer;
  bool allows_in_place() const override { return true; }
  bool keeps_bottom() const override { return backward_reads(op_).src; }
  // Caffe takes the sign from the bottom, which an own top leaves as it is.
  bool keeps_top() const override { return has_own_top_ && has_two_slopes_by_dst(op_); }
  LayoutRule layout_rule() const override {
    return keeps_zero(op_) ? LayoutRule::kSame : LayoutRule::kSameUnpadded;
  }
  bool takes_bfloat16() const override { return true; }
  bool backward_reads_bottom(int) const override {
    return backward_reads(op_).src && !copy_.is_kept();
  }
  bool backward_reads_top(int) const override { return backward_reads(op_).dst; }
  bool values_may_share(int, int) const override { return true; }
  bool gradients_may_share(int, int) const override { return true; }
  std::optional<UnaryOp> activation() const override { return op_; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  std::int64_t workspace_bytes() const override { return copy_.bytes(); }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 protected:
  // The function that the layer's options name. Errors: kConfig, by error().
  virtual Result<UnaryOp> read_op() const = 0;

 private:
  UnaryOp op_;
  bool has_own_top_ = false;  // by the net's definition
  BottomCopy copy_;
};

}  // namespace speedo
