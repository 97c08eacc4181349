#include "core/layers/threshold.hpp"

#include "caffe.pb.h"

namespace speedo {

Result<UnaryOp> ThresholdLayer::read_op() const {
  return UnaryOp{UnaryKind::kThreshold, parameter_message().threshold_param().threshold()};
}

}  // namespace speedo
