#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = (shift + scale x bottom) ^ power, and a constant if scale or power is 0.
class PowerLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
