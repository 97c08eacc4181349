#include "core/layers/filter.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

namespace speedo {

Result<void> FilterLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  if (tops.size() + 1 != bottoms.size()) {
    return error(
        fmt::format("needs a top for each bottom but the last, the selector: {} for {} "
                    "bottoms, the prototxt gives {}",
                    bottoms.size() - 1, bottoms.size(), tops.size()));
  }
  selector_ = static_cast<int>(tops.size());
  return {};
}

// As if all items were selected.
Result<void> FilterLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& selector = bottoms.back()->shape();
  if (selector.axes() < 1 || selector.count(1) != 1) {
    return error(
        fmt::format("the selector needs one value an item, its shape is {}", to_string(selector)));
  }
  for (std::size_t i = 0; i < tops.size(); ++i) {
    const Shape& items = bottoms[i]->shape();
    if (items.axes() < 1 || items[0] != selector[0]) {
      return error(fmt::format("the selector is for {} items, bottom {} has the shape {}",
                               selector[0], i, to_string(items)));
    }
    tops[i]->reshape(items);
  }
  return {};
}

Result<void> FilterLayer::forward(Tensors bottoms, Tensors tops) {
  const std::vector<float> selector = bottoms.back()->values(backend());
  runs_.clear();
  std::int64_t selected = 0;
  for (std::size_t i = 0; i < selector.size(); ++i) {
    if (selector[i] == 0.0F) continue;
    const auto item = static_cast<std::int64_t>(i);
    const bool goes_on = !runs_.empty() && runs_.back().first + runs_.back().count == item;
    if (!goes_on) runs_.push_back({item, 0});
    ++runs_.back().count;
    ++selected;
  }
  for (std::size_t t = 0; t < tops.size(); ++t) {
    const std::int64_t size = bottoms[t]->shape().count(1);
    std::vector<std::int64_t> dims = bottoms[t]->shape().dims();
    dims[0] = selected;
    SPEEDO_ASSIGN(const Shape shape, Shape::create(std::move(dims)));
    tops[t]->reshape(shape);
    float* target = tops[t]->data();
    for (const Run& run : runs_) {
      backend().copy(run.count * size, bottoms[t]->data() + run.first * size, target);
      target += run.count * size;
    }
  }
  return {};
}

void FilterLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  for (std::size_t t = 0; t < tops.size(); ++t) {
    if (!propagate[t]) continue;
    const std::int64_t size = bottoms[t]->shape().count(1);
    backend().fill(bottoms[t]->count(), 0.0F, bottoms[t]->grad());
    const float* source = tops[t]->grad();
    for (const Run& run : runs_) {
      backend().copy(run.count * size, source, bottoms[t]->grad() + run.first * size);
      source += run.count * size;
    }
  }
}

}  // namespace speedo
