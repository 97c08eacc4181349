#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = 1 where bottom is above the threshold, else 0. Nothing can be learned through it.
class ThresholdLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;
  bool can_propagate(int) const override { return false; }

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
