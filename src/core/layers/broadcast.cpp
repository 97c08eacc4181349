#include "core/layers/broadcast.hpp"

#include <fmt/format.h>

namespace speedo {
namespace {

bool is_scalar(const ArrayShape& shape) { return shape.channels == 1 && shape.batch == 1; }

// Whether outer x factor x inner are batch x channels x positions.
bool is_over_channels(const Shape& bottom, const ArrayShape& shape) {
  return bottom.axes() >= 2 && shape.batch == bottom[0] && shape.channels == bottom[1];
}

}  // namespace

Result<Shape> factor_shape(const Shape& bottom, int axis, int num_axes) {
  SPEEDO_ASSIGN(const int begin, bottom.canonical_axis(axis));
  if (num_axes < -1) {
    return config_error(
        fmt::format("num_axes is {}, it must be at least 0, or -1 for all axes from axis "
                    "on",
                    num_axes));
  }
  if (num_axes > bottom.axes() - begin) {
    return config_error(fmt::format("axis {} and num_axes {} go beyond the {} axes of {}", begin,
                                    num_axes, bottom.axes(), to_string(bottom)));
  }
  const auto first = bottom.dims().begin() + begin;
  return Shape::create({first, num_axes == -1 ? bottom.dims().end() : first + num_axes});
}

Result<ArrayShape> broadcast_shape(const Shape& bottom, int axis, const Shape& factor) {
  if (factor.axes() == 0) return ArrayShape{1, 1, bottom.count()};
  SPEEDO_ASSIGN(const int begin, bottom.canonical_axis(axis));
  const int end = begin + factor.axes();
  bool fits = end <= bottom.axes();
  for (int i = begin; fits && i < end; ++i) fits = bottom[i] == factor[i - begin];
  if (!fits) {
    return config_error(
        fmt::format("a factor of shape {} does not fit the bottom {} from axis {} on",
                    to_string(factor), to_string(bottom), begin));
  }
  return ArrayShape{bottom.count(0, begin), factor.count(), bottom.count(end)};
}

LayoutRule broadcast_layout_rule(const Shape& bottom, const ArrayShape& shape, bool adds) {
  if (is_over_channels(bottom, shape)) return LayoutRule::kSame;
  if (!is_scalar(shape)) return LayoutRule::kPlain;
  return adds ? LayoutRule::kSameUnpadded : LayoutRule::kSame;
}

ChannelView channel_view(const Tensor& tensor, const ArrayShape& shape) {
  if (is_over_channels(tensor.shape(), shape)) return {shape, tensor.layout()};
  if (is_scalar(shape)) return {{1, 1, tensor.storage_count()}, {1, tensor.layout().type}};
  return {shape, {}};
}

}  // namespace speedo
