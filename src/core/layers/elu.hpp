#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = bottom where it is positive, else alpha (e^bottom - 1) (Clevert et al. 2015).
class EluLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
