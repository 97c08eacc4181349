#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = 1 / (1 + e^-bottom).
class SigmoidLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
