#include "core/layers/input.hpp"

#include <fmt/format.h>

#include "caffe.pb.h"
#include "core/layers/support.hpp"

namespace speedo {

// The tops get their shapes here and not in reshape(), which would undo a caller's own reshape.
Result<void> InputLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& shapes = parameter_message().input_param().shape();
  const auto given = static_cast<std::size_t>(shapes.size());
  if (given != 1 && given != tops.size()) {
    return error(fmt::format("input_param has {} shape(s) for {} top(s); give one, or one per top",
                             given, tops.size()));
  }
  for (std::size_t i = 0; i < tops.size(); ++i) {
    auto shape = shape_from(shapes[given == 1 ? 0 : static_cast<int>(i)]);
    if (!shape) return error(shape.error().message);
    tops[i]->reshape(*shape);
  }
  return {};
}

}  // namespace speedo
