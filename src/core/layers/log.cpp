#include "core/layers/log.hpp"

#include <cmath>

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {

Result<UnaryOp> LogLayer::read_op() const {
  const auto& options = parameter_message().log_param();
  const bool is_natural = options.base() == -1.0F;
  if (!is_natural && (!(options.base() > 0.0F) || options.base() == 1.0F)) {
    return error(
        fmt::format("log_param: base {} must be above 0 and not 1, or -1 for e", options.base()));
  }
  const double factor = is_natural ? 1.0 : 1.0 / std::log(double{options.base()});
  return UnaryOp{UnaryKind::kLog, options.scale(), options.shift(), static_cast<float>(factor)};
}

}  // namespace speedo
