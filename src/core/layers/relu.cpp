#include "core/layers/relu.hpp"

#include "caffe.pb.h"

namespace speedo {

Result<UnaryOp> ReluLayer::read_op() const {
  return UnaryOp{UnaryKind::kRelu, parameter_message().relu_param().negative_slope()};
}

}  // namespace speedo
