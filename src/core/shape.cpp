#include <speedo/core/shape.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

namespace speedo {

Result<Shape> Shape::create(std::vector<std::int64_t> dims) {
  if (dims.size() > static_cast<std::size_t>(kBlobAxesMax)) {
    return Error{ErrorCode::kConfig, fmt::format("shape with {} axes: at most {} are possible",
                                                 dims.size(), kBlobAxesMax)};
  }
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0) {
      return Error{ErrorCode::kConfig,
                   fmt::format("shape {}: a dimension is negative", fmt::join(dims, " x "))};
    }
    // A zero anywhere makes the count 0, but the other dimensions must still fit.
    if (dim > kBlobElementsMax || (dim > 0 && count > kBlobElementsMax / dim)) {
      return Error{ErrorCode::kConfig, fmt::format("shape {}: more than {} elements",
                                                   fmt::join(dims, " x "), kBlobElementsMax)};
    }
    count *= std::max<std::int64_t>(dim, 1);
  }
  Shape shape;
  shape.dims_ = std::move(dims);
  return shape;
}

std::int64_t Shape::operator[](int axis) const {
  SPEEDO_ASSERT(axis >= 0 && axis < axes());
  return dims_[static_cast<std::size_t>(axis)];
}

std::int64_t Shape::count(int from, int to) const {
  SPEEDO_ASSERT(0 <= from && from <= to && to <= axes());
  std::int64_t product = 1;
  for (int axis = from; axis < to; ++axis) {
    product *= dims_[static_cast<std::size_t>(axis)];
  }
  return product;
}

Result<int> Shape::canonical_axis(int axis) const {
  if (axis < -axes() || axis >= axes()) {
    return Error{ErrorCode::kConfig, fmt::format("axis {} does not exist in a shape of {} axes: {}",
                                                 axis, axes(), to_string(*this))};
  }
  return axis < 0 ? axis + axes() : axis;
}

bool Shape::matches_legacy(const Shape& other) const {
  const Shape& longer = axes() >= other.axes() ? *this : other;
  const Shape& shorter = axes() >= other.axes() ? other : *this;
  const auto extra = longer.dims_.end() - static_cast<std::ptrdiff_t>(shorter.dims_.size());
  return std::all_of(longer.dims_.begin(), extra, [](std::int64_t dim) { return dim == 1; }) &&
         std::equal(extra, longer.dims_.end(), shorter.dims_.begin());
}

std::string to_string(const Shape& shape) {
  std::string text;
  for (const std::int64_t dim : shape.dims()) {
    text += fmt::format("{} ", dim);
  }
  return text + fmt::format("({})", shape.count());
}

}  // namespace speedo
