#include "core/layers/batch_reindex.hpp"

#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

namespace speedo {

Result<void> BatchReindexLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& items = bottoms[0]->shape();
  const Shape& indices = bottoms[1]->shape();
  if (items.axes() < 1) return error("its first bottom has no axis of items");
  if (indices.axes() != 1) {
    return error(fmt::format("the indices, its second bottom, need 1 axis, their shape is {}",
                             to_string(indices)));
  }
  std::vector<std::int64_t> dims = items.dims();
  dims[0] = indices[0];
  auto shape = Shape::create(std::move(dims));
  if (!shape) return error(shape.error().message);
  tops[0]->reshape(*shape);
  return {};
}

Result<void> BatchReindexLayer::forward(Tensors bottoms, Tensors tops) {
  const std::vector<float> indices = bottoms[1]->values(backend());
  const std::int64_t count = bottoms[0]->shape()[0], size = bottoms[0]->shape().count(1);
  items_.clear();
  for (const float index : indices) {
    const bool is_item = index >= 0.0F && index < static_cast<float>(count);
    if (!is_item) {
      return error(
          fmt::format("index {:g} at {} is outside 0..{}", index, items_.size(), count - 1),
          ErrorCode::kData);
    }
    items_.push_back(static_cast<std::int64_t>(index));
  }
  float* target = tops[0]->data();
  for (const std::int64_t item : items_) {
    backend().copy(size, bottoms[0]->data() + item * size, target);
    target += size;
  }
  return {};
}

void BatchReindexLayer::backward(Tensors tops, const std::vector<bool>& propagate,
                                 Tensors bottoms) {
  if (!propagate[0]) return;
  const std::int64_t size = bottoms[0]->shape().count(1);
  backend().fill(bottoms[0]->count(), 0.0F, bottoms[0]->grad());
  const float* source = tops[0]->grad();
  for (const std::int64_t item : items_) {
    float* target = bottoms[0]->grad() + item * size;
    backend().axpby(size, 1.0F, source, 1.0F, target);
    source += size;
  }
}

}  // namespace speedo
