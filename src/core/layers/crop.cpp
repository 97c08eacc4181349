#include "core/layers/crop.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<std::vector<std::int64_t>> CropLayer::read_offsets(const Shape& bottom, int axis) const {
  const auto& given = parameter_message().crop_param().offset();
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(bottom.axes()), 0);
  const int cropped = bottom.axes() - axis;
  if (given.size() > 1 && given.size() != cropped) {
    return error(
        fmt::format("offset is given {} times for the {} axes from axis {} on of {}; give "
                    "it once, or once per axis",
                    given.size(), cropped, axis, to_string(bottom)));
  }
  for (int i = 0; i < cropped && !given.empty(); ++i) {
    offsets[static_cast<std::size_t>(axis + i)] = given[given.size() == 1 ? 0 : i];
  }
  return offsets;
}

Result<void> CropLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  const Shape& wanted = bottoms[1]->shape();
  const auto axis = bottom.canonical_axis(parameter_message().crop_param().axis());
  if (!axis) return error(axis.error().message);
  if (wanted.axes() < bottom.axes()) {
    return error(
        fmt::format("its second bottom, whose size it cuts to, needs the {} axes of the "
                    "first, {}; it is {}",
                    bottom.axes(), to_string(bottom), to_string(wanted)));
  }
  SPEEDO_ASSIGN(offsets_, read_offsets(bottom, *axis));
  std::vector<std::int64_t> dims = bottom.dims();
  for (int i = *axis; i < bottom.axes(); ++i) {
    const std::int64_t offset = offsets_[static_cast<std::size_t>(i)];
    if (offset + wanted[i] > bottom[i]) {
      return error(
          fmt::format("cannot cut {} elements from offset {} on out of axis {} of {}; use "
                      "a smaller offset or a larger first bottom",
                      wanted[i], offset, i, to_string(bottom)));
    }
    dims[static_cast<std::size_t>(i)] = wanted[i];
  }
  auto top = Shape::create(std::move(dims));
  if (!top) return error(top.error().message);
  tops[0]->reshape(*top);
  whole_ = bottom;
  part_ = *top;
  return {};
}

// Calls visit(first element of the whole, first of the part) for each part of the last two axes.
template <class Visit>
void CropLayer::for_each_plane(const Visit& visit) const {
  const int outer = std::max(0, part_.axes() - 2);
  const std::int64_t planes = part_.count() == 0 ? 0 : part_.count(0, outer);
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    std::int64_t rest = plane, from = 0;
    for (int axis = part_.axes() - 1; axis >= 0; --axis) {
      std::int64_t index = offsets_[static_cast<std::size_t>(axis)];
      if (axis < outer) {
        index += rest % part_[axis];
        rest /= part_[axis];
      }
      from += index * whole_.count(axis + 1);
    }
    visit(from, plane * part_.count(outer));
  }
}

Result<void> CropLayer::forward(Tensors bottoms, Tensors tops) {
  const int last = part_.axes() - 1;
  const std::int64_t rows = last > 0 ? part_[last - 1] : 1;
  for_each_plane([&](std::int64_t from, std::int64_t to) {
    backend().copy_rows(rows, part_[last], bottoms[0]->data() + from, whole_[last],
                        tops[0]->data() + to, part_[last]);
  });
  return {};
}

void CropLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (propagate[1]) backend().fill(bottoms[1]->count(), 0.0F, bottoms[1]->grad());
  if (!propagate[0]) return;
  backend().fill(bottoms[0]->count(), 0.0F, bottoms[0]->grad());
  const int last = part_.axes() - 1;
  const std::int64_t rows = last > 0 ? part_[last - 1] : 1;
  for_each_plane([&](std::int64_t to, std::int64_t from) {
    backend().copy_rows(rows, part_[last], tops[0]->grad() + from, part_[last],
                        bottoms[0]->grad() + to, whole_[last]);
  });
}

}  // namespace speedo
