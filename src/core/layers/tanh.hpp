#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = the hyperbolic tangent of bottom.
class TanhLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
