#include "core/layers/swish.hpp"

#include "caffe.pb.h"

namespace speedo {

Result<UnaryOp> SwishLayer::read_op() const {
  return UnaryOp{UnaryKind::kSwish, parameter_message().swish_param().beta()};
}

}  // namespace speedo
