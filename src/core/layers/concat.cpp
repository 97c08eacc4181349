#include "core/layers/concat.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/limits.hpp>

#include "caffe.pb.h"
#include "core/layers/support.hpp"

namespace speedo {

Result<void> ConcatLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().concat_param();
  if (options.has_axis() && options.has_concat_dim()) {
    return error("give either axis or concat_dim, not both");
  }
  if (options.concat_dim() >= static_cast<std::uint32_t>(kBlobAxesMax)) {
    return error(fmt::format("concat_dim {} does not exist", options.concat_dim()));
  }
  const int axis =
      options.has_concat_dim() ? static_cast<int>(options.concat_dim()) : options.axis();
  auto canonical = bottoms[0]->shape().canonical_axis(axis);
  if (!canonical) return error(canonical.error().message);
  axis_ = *canonical;
  return {};
}

Result<void> ConcatLayer::reshape(Tensors bottoms, Tensors tops) {
  std::vector<std::int64_t> dims = bottoms[0]->shape().dims();
  const auto axis = static_cast<std::size_t>(axis_);
  if (axis >= dims.size()) {
    return error(fmt::format("its bottoms have no axis {}: {}", axis_,
                             to_string(bottoms[0]->shape())));
  }
  for (const Tensor* bottom : bottoms.subspan(1)) {
    std::vector<std::int64_t> other = bottom->shape().dims();
    const std::int64_t size = axis < other.size() ? other[axis] : 0;
    if (axis < other.size()) other[axis] = dims[axis];
    if (other != dims) {
      return error(fmt::format("its bottoms must agree on every axis but {}: {} and {}", axis_,
                               to_string(bottoms[0]->shape()), to_string(bottom->shape())));
    }
    dims[axis] += size;
  }
  auto shape = Shape::create(std::move(dims));
  if (!shape) return error(shape.error().message);
  tops[0]->reshape(*shape);
  if (bottoms.size() == 1) {
    tops[0]->share_data(*bottoms[0]);
    tops[0]->share_grad(*bottoms[0]);
  }
  return {};
}

LayoutRule ConcatLayer::layout_rule() const {
  if (axis_ == 0) return LayoutRule::kSame;
  return axis_ == 1 ? LayoutRule::kSameUncut : LayoutRule::kPlain;
}

Result<void> ConcatLayer::forward(Tensors bottoms, Tensors tops) {
  if (bottoms.size() == 1) return {};
  const std::int64_t rows = rows_along(*tops[0], axis_);
  if (rows == 0) return {};
  const std::int64_t stride = tops[0]->storage_count() / rows;
  float* target = tops[0]->data();
  for (const Tensor* bottom : bottoms) {
    const Elements columns{bottom->storage_count() / rows, bottom->layout().type};
    backend().copy_rows(rows, columns, bottom->data(), columns.count, target, stride);
    target = element_at(target, columns.count, columns.type);
  }
  return {};
}

void ConcatLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (bottoms.size() == 1) return;
  const std::int64_t rows = rows_along(*tops[0], axis_);
  if (rows == 0) return;
  const std::int64_t stride = tops[0]->storage_count() / rows;
  const float* source = tops[0]->grad();
  for (std::size_t i = 0; i < bottoms.size(); ++i) {
    const Elements columns{bottoms[i]->storage_count() / rows, bottoms[i]->layout().type};
    if (propagate[i]) {
      backend().copy_rows(rows, columns, source, stride, bottoms[i]->grad(), columns.count);
    }
    source = element_at(source, columns.count, columns.type);
  }
}

}  // namespace speedo
