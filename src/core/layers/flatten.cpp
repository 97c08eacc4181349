#include "core/layers/flatten.hpp"

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {

Result<void> FlattenLayer::reshape(Tensors bottoms, Tensors tops) {
  const auto& options = parameter_message().flatten_param();
  const Shape& bottom = bottoms[0]->shape();
  auto first = bottom.canonical_axis(options.axis());
  if (!first) return error(first.error().message);
  auto last = bottom.canonical_axis(options.end_axis());
  if (!last) return error(last.error().message);
  // As in Caffe, nothing between them is an axis of 1.
  if (*first > *last + 1) {
    return error(
        fmt::format("axis {} comes after end_axis {}", options.axis(), options.end_axis()));
  }
  std::vector<std::int64_t> dims(bottom.dims().begin(), bottom.dims().begin() + *first);
  dims.push_back(bottom.count(*first, *last + 1));
  dims.insert(dims.end(), bottom.dims().begin() + *last + 1, bottom.dims().end());
  auto shape = Shape::create(std::move(dims));
  if (!shape) return error(shape.error().message);
  tops[0]->reshape(*shape);
  tops[0]->share_data(*bottoms[0]);
  tops[0]->share_grad(*bottoms[0]);
  return {};
}

}  // namespace speedo
