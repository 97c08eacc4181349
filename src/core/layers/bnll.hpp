#pragma once

#include "core/layers/elementwise.hpp"

namespace speedo {

// top = log(1 + e^bottom), Caffe's BNLL: a smooth ReLU.
class BnllLayer final : public ElementwiseLayer {
 public:
  using ElementwiseLayer::ElementwiseLayer;

 protected:
  Result<UnaryOp> read_op() const override;
};

}  // namespace speedo
