#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = base ^ (shift + scale bottom); base -1 means e.
class ExpLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
