#pragma once

#include <optional>

#include <speedo/base/result.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// What Scale and Bias share: a factor whose axes are the bottom's from `axis` on, as many as it
// has, is repeated over all others.

// The shape of a factor that is learned: the bottom's axes [axis, axis + num_axes), all from `axis`
// on if num_axes is -1. Error: kConfig.
Result<Shape> factor_shape(const Shape& bottom, int axis, int num_axes);

// The bottom as outer x factor x inner. A factor without axes is a scalar, whatever `axis` says.
// Error: kConfig, if the factor's axes are not the bottom's.
Result<ArrayShape> broadcast_shape(const Shape& bottom, int axis, const Shape& factor);

// Which layouts suit: any where the factor is the channels' or a scalar.
LayoutRule broadcast_layout_rule(const Shape& bottom, const ArrayShape& shape, bool adds);

// How Backend's channel operations see a tensor of that shape. Requires: broadcast_layout_rule()
// was kept.
ChannelView channel_view(const Tensor& tensor, const ArrayShape& shape);

}  // namespace speedo
