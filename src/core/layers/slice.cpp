#include "core/layers/slice.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/limits.hpp>

#include "caffe.pb.h"
#include "core/layers/support.hpp"

namespace speedo {

Result<void> SliceLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().slice_param();
  if (options.has_axis() && options.has_slice_dim()) {
    return error("give either axis or slice_dim, not both");
  }
  if (options.slice_dim() >= static_cast<std::uint32_t>(kBlobAxesMax)) {
    return error(fmt::format("slice_dim {} does not exist", options.slice_dim()));
  }
  const int axis = options.has_slice_dim() ? static_cast<int>(options.slice_dim()) : options.axis();
  auto canonical = bottoms[0]->shape().canonical_axis(axis);
  if (!canonical) return error(canonical.error().message);
  axis_ = *canonical;
  return {};
}

// How much of the axis each top gets.
Result<std::vector<std::int64_t>> SliceLayer::part_sizes(std::int64_t size,
                                                         std::size_t parts) const {
  const auto& points = parameter_message().slice_param().slice_point();
  const auto count = static_cast<std::int64_t>(parts);
  if (points.empty()) {
    if (size % count != 0) {
      return error(
          fmt::format("axis {} of size {} cannot be cut into {} equal parts; give {} "
                      "slice_points",
                      axis_, size, count, count - 1));
    }
    return std::vector<std::int64_t>(parts, size / count);
  }
  if (points.size() + 1 != count) {
    return error(fmt::format("{} tops need {} slice_points, the prototxt gives {}", count,
                             count - 1, points.size()));
  }
  std::vector<std::int64_t> sizes;
  std::int64_t begin = 0;
  for (const std::int64_t point : points) {
    if (point <= begin || point >= size) {
      return error(fmt::format("slice_point {} must lie between {} and axis {}'s size {}", point,
                               begin, axis_, size));
    }
    sizes.push_back(point - begin);
    begin = point;
  }
  sizes.push_back(size - begin);
  return sizes;
}

Result<void> SliceLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  if (axis_ >= bottom.axes()) {
    return error(fmt::format("slices axis {}, its bottom is now {}", axis_, to_string(bottom)));
  }
  SPEEDO_ASSIGN(const std::vector<std::int64_t> sizes, part_sizes(bottom[axis_], tops.size()));
  for (std::size_t i = 0; i < tops.size(); ++i) {
    std::vector<std::int64_t> dims = bottom.dims();
    dims[static_cast<std::size_t>(axis_)] = sizes[i];
    SPEEDO_ASSIGN(const Shape shape, Shape::create(std::move(dims)));
    tops[i]->reshape(shape);
  }
  if (tops.size() == 1) {
    tops[0]->share_data(*bottoms[0]);
    tops[0]->share_grad(*bottoms[0]);
  }
  return {};
}

LayoutRule SliceLayer::layout_rule() const {
  if (axis_ == 0) return LayoutRule::kSame;
  return axis_ == 1 ? LayoutRule::kSameUncut : LayoutRule::kPlain;
}

Result<void> SliceLayer::forward(Tensors bottoms, Tensors tops) {
  if (tops.size() == 1) return {};
  const std::int64_t rows = rows_along(*bottoms[0], axis_);
  if (rows == 0) return {};
  const std::int64_t stride = bottoms[0]->storage_count() / rows;
  const float* source = bottoms[0]->data();
  for (Tensor* top : tops) {
    const Elements columns{top->storage_count() / rows, top->layout().type};
    backend().copy_rows(rows, columns, source, stride, top->data(), columns.count);
    source = element_at(source, columns.count, columns.type);
  }
  return {};
}

void SliceLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0] || tops.size() == 1) return;
  const std::int64_t rows = rows_along(*bottoms[0], axis_);
  if (rows == 0) return;
  const std::int64_t stride = bottoms[0]->storage_count() / rows;
  float* target = bottoms[0]->grad();
  for (const Tensor* top : tops) {
    const Elements columns{top->storage_count() / rows, top->layout().type};
    backend().copy_rows(rows, columns, top->grad(), columns.count, target, stride);
    target = element_at(target, columns.count, columns.type);
  }
}

}  // namespace speedo
