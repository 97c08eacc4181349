#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = bottom where it is positive, else negative_slope x bottom.
class ReluLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;
  // As Caffe's, it takes the top's sign in place, also where a negative slope turns it.
  bool keeps_bottom() const override { return false; }

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
