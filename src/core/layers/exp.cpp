#include "core/layers/exp.hpp"

#include <cmath>

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {

Result<UnaryOp> ExpLayer::read_op() const {
  const auto& options = parameter_message().exp_param();
  const bool is_natural = options.base() == -1.0F;
  if (!is_natural && !(options.base() > 0.0F)) {
    return error(fmt::format("exp_param: base {} must be above 0, or -1 for e", options.base()));
  }
  const double log_base = is_natural ? 1.0 : std::log(double{options.base()});
  return UnaryOp{UnaryKind::kExp, static_cast<float>(log_base * options.scale()),
                 static_cast<float>(std::exp(log_base * options.shift()))};
}

}  // namespace speedo
