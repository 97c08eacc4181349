#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = log of (shift + scale bottom) to the base; base -1 means e.
class LogLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
