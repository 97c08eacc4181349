#include "core/layers/reshape.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "caffe.pb.h"

namespace speedo {

Result<void> ReshapeLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& dims = parameter_message().reshape_param().shape().dim();
  if (std::count(dims.begin(), dims.end(), -1) > 1) {
    return error(fmt::format("shape {} has more than one -1", fmt::join(dims, " ")));
  }
  for (const std::int64_t dim : dims) {
    if (dim < -1) return error(fmt::format("shape has a dim {}; it must be -1, 0 or more", dim));
  }
  return {};
}

Result<ReshapeLayer::Range> ReshapeLayer::replaced_axes(const Shape& bottom) const {
  const auto& options = parameter_message().reshape_param();
  // -1 begins behind the last axis, so that axes can be added there.
  const std::int64_t begin =
      options.axis() >= 0 ? options.axis() : std::int64_t{bottom.axes()} + options.axis() + 1;
  if (begin < 0 || begin > bottom.axes()) {
    return error(fmt::format("axis {} is not one of {}", options.axis(), to_string(bottom)));
  }
  if (options.num_axes() < -1) {
    return error(fmt::format("num_axes is {}, it must be at least 0, or -1 for all axes left",
                             options.num_axes()));
  }
  const std::int64_t end = options.num_axes() == -1 ? bottom.axes() : begin + options.num_axes();
  if (end > bottom.axes()) {
    return error(fmt::format("axis {} and num_axes {} go beyond the {} axes of {}", begin,
                             options.num_axes(), bottom.axes(), to_string(bottom)));
  }
  return Range{static_cast<int>(begin), static_cast<int>(end)};
}

// Puts a number in the place of -1. `dims` are all of the top's.
Result<void> ReshapeLayer::infer(const Shape& bottom, Range range,
                                 std::vector<std::int64_t>& dims) const {
  const auto inferred = std::find(dims.begin() + range.begin, dims.end(), -1);
  if (inferred == dims.end()) return {};
  *inferred = 1;
  auto others = Shape::create(dims);
  if (!others) return error(others.error().message);
  const std::int64_t known = others->count();
  if (known == 0 || bottom.count() % known != 0) {
    return error(
        fmt::format("the -1 cannot be found: the bottom {} has {} elements, which the "
                    "product {} of the other dims does not divide",
                    to_string(bottom), bottom.count(), known));
  }
  *inferred = bottom.count() / known;
  return {};
}

Result<Shape> ReshapeLayer::top_shape(const Shape& bottom) const {
  SPEEDO_ASSIGN(const Range range, replaced_axes(bottom));
  std::vector<std::int64_t> dims(bottom.dims().begin(), bottom.dims().begin() + range.begin);
  for (const std::int64_t dim : parameter_message().reshape_param().shape().dim()) {
    const auto axis = static_cast<int>(dims.size());
    if (dim == 0 && axis >= bottom.axes()) {
      return error(
          fmt::format("shape has a 0 for axis {}, which the bottom {} does not have to "
                      "copy",
                      axis, to_string(bottom)));
    }
    dims.push_back(dim == 0 ? bottom[axis] : dim);
  }
  dims.insert(dims.end(), bottom.dims().begin() + range.end, bottom.dims().end());
  SPEEDO_TRY(infer(bottom, range, dims));
  auto shape = Shape::create(std::move(dims));
  if (!shape) return error(shape.error().message);
  if (shape->count() != bottom.count()) {
    return error(
        fmt::format("cannot make {} of {}: the counts differ; a dim of -1 takes what is "
                    "left",
                    to_string(*shape), to_string(bottom)));
  }
  return *shape;
}

Result<void> ReshapeLayer::reshape(Tensors bottoms, Tensors tops) {
  SPEEDO_ASSIGN(const Shape shape, top_shape(bottoms[0]->shape()));
  tops[0]->reshape(shape);
  tops[0]->share_data(*bottoms[0]);
  tops[0]->share_grad(*bottoms[0]);
  return {};
}

}  // namespace speedo
