#include "core/layers/power.hpp"

#include "caffe.pb.h"

namespace speedo {

Result<UnaryOp> PowerLayer::read_op() const {
  const auto& options = parameter_message().power_param();
  return UnaryOp{UnaryKind::kPower, options.scale(), options.shift(), options.power()};
}

}  // namespace speedo
