#include "core/layers/elu.hpp"

#include "caffe.pb.h"

namespace speedo {

Result<UnaryOp> EluLayer::read_op() const {
  return UnaryOp{UnaryKind::kElu, parameter_message().elu_param().alpha()};
}

}  // namespace speedo
