#include "core/layers/memory_data.hpp"

#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<void> MemoryDataLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().memory_data_param();
  auto shape =
      Shape::create({options.batch_size(), options.channels(), options.height(), options.width()});
  if (!shape) return error("memory_data_param: " + shape.error().message);
  if (shape->count() == 0) {
    return error(
        fmt::format("memory_data_param needs batch_size, channels, height and width above "
                    "0; they are {}, {}, {} and {}",
                    (*shape)[0], (*shape)[1], (*shape)[2], (*shape)[3]));
  }
  shape_ = std::move(*shape);
  return {};
}

// The labels have four axes, as Caffe's forward pass gives them.
Result<void> MemoryDataLayer::reshape(Tensors /*bottoms*/, Tensors tops) {
  tops[0]->reshape(shape_);
  tops[1]->reshape({shape_[0], 1, 1, 1});
  return {};
}

Result<void> MemoryDataLayer::give_arrays(std::span<const float> data,
                                          std::span<const float> labels) {
  const auto items = static_cast<std::int64_t>(labels.size());
  if (items == 0 || items % shape_[0] != 0) {
    return error(fmt::format("is given {} items, it needs a multiple of its batch_size {}", items,
                             shape_[0]));
  }
  const auto values = static_cast<std::int64_t>(data.size());
  if (values / items != shape_.count(1) || values % items != 0) {
    return error(fmt::format("is given {} values for {} items, it needs {} for each", values, items,
                             shape_.count(1)));
  }
  data_ = data;
  labels_ = labels;
  step_ = 0;
  return {};
}

void MemoryDataLayer::set_batch_span(const BatchSpan& span) {
  span_ = span;
  step_ = 0;
}

Result<void> MemoryDataLayer::forward(Tensors /*bottoms*/, Tensors tops) {
  if (labels_.empty()) {
    return error(
        "no arrays are given: only a program that has this net in its memory can give "
        "them (Net::give_arrays()); use a Data or HDF5Data layer",
        ErrorCode::kData);
  }
  const auto batch_size = static_cast<std::size_t>(shape_[0]);
  const std::uint64_t batch = span_.at(step_++) % (labels_.size() / batch_size);
  const auto first = static_cast<std::size_t>(batch) * batch_size;
  const auto item = static_cast<std::size_t>(shape_.count(1));
  backend().device().upload(tops[0]->data(), data_.subspan(first * item, batch_size * item));
  backend().device().upload(tops[1]->data(), labels_.subspan(first, batch_size));
  return {};
}

}  // namespace speedo
