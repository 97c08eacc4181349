#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = bottom, no less than min and no more than max.
class ClipLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
