#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = bottom x sigmoid(beta bottom) (Ramachandran et al. 2017).
class SwishLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
