#include "core/layers/clip.hpp"

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {

Result<UnaryOp> ClipLayer::read_op() const {
  const auto& options = parameter_message().clip_param();
  if (!options.has_min() || !options.has_max()) {
    return error("clip_param needs min and max");
  }
  if (!(options.min() <= options.max())) {
    return error(fmt::format("clip_param: min {} is above max {}", options.min(), options.max()));
  }
  return UnaryOp{UnaryKind::kClip, options.min(), options.max()};
}

}  // namespace speedo
