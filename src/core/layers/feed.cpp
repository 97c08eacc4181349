#include "core/layers/feed.hpp"

#include <algorithm>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "caffe.pb.h"
#include "core/layers/support.hpp"

namespace speedo {
LayerArity FeedLayer::arity() const {
  LayerArity arity{.bottoms_min = 0, .bottoms_max = 0, .tops_min = 1, .tops_max = -1};
  const bool images = type() == "ImageData" || type() == "WindowData";
  if (images) arity.tops_min = 2;
  if (images || type() == "Data") arity.tops_max = 2;
  return arity;
}

FeedLayer::~FeedLayer() {
  if (!slots_.empty()) backend().device().wait(there_);
}

Result<void> FeedLayer::setup(const LayerContext& layer_context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(layer_context, bottoms, tops));
  if (context().feeds == nullptr)
    return error("data layers cannot be used here: no data is at hand");
  FeedOptions options = context().feed_options;
  options.phase = context().phase;
  options.top_count = static_cast<int>(tops.size());
  if (has_own_memory(backend())) options.pinned_by = &backend().device();
  auto feed = context().feeds->open(parameter_message(), options);
  if (!feed) return error(feed.error().message, feed.error().code);
  feed_ = std::move(feed).value();
  shapes_ = feed_->shapes();
  SPEEDO_ASSERT(shapes_.size() == tops.size());
  return {};
}

Result<void> FeedLayer::reshape(Tensors, Tensors tops) {
  for (std::size_t i = 0; i < tops.size(); ++i) tops[i]->reshape(shapes_[i]);
  return {};
}

Result<void> FeedLayer::prepare(Tensors, Tensors tops, bool) {
  if (!has_own_memory(backend()) || batches_vary()) return {};
  slots_.resize(tops.size());
  for (std::size_t i = 0; i < tops.size(); ++i) {
    slots_[i].reshape(tops[i]->shape());
    SPEEDO_TRY(allocate(slots_[i]));
  }
  return {};
}

std::int64_t FeedLayer::workspace_bytes() const {
  std::int64_t floats = 0;
  for (const Tensor& slot : slots_) floats += slot.count();
  return floats * static_cast<std::int64_t>(sizeof(float));
}

void FeedLayer::read_ahead() {
  const std::uint64_t count = kPrefetchBatches + (staged_ ? 1 : 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t batch = span_.at(step_ + i);
    if (staged_ != batch) feed_->will_need(batch);
  }
}

void FeedLayer::set_batch_span(const BatchSpan& span) {
  span_ = span;
  step_ = 0;
  read_ahead();
}

Result<bool> FeedLayer::next_batch_differs(Tensors tops) {
  if (!batches_vary()) return false;
  auto next = feed_->shapes_of(span_.at(step_));
  if (!next) return error(next.error().message, next.error().code);
  shapes_ = std::move(next).value();
  const auto shape_of = [](const Tensor* top) -> const Shape& { return top->shape(); };
  return !std::ranges::equal(tops, shapes_, {}, shape_of);
}

Result<void> FeedLayer::forward(Tensors, Tensors tops) {
  if (!slots_.empty()) return forward_staged(tops);
  auto values = feed_->read(span_.at(step_));
  if (!values) return error(values.error().message, values.error().code);
  ++step_;
  read_ahead();
  for (std::size_t i = 0; i < tops.size(); ++i) {
    SPEEDO_ASSERT(static_cast<std::size_t>(tops[i]->count()) == (*values)[i].size());
    backend().device().upload(tops[i]->data(), (*values)[i]);
  }
  return {};
}

Result<void> FeedLayer::forward_staged(Tensors tops) {
  const std::uint64_t batch = span_.at(step_);
  if (staged_ != batch) SPEEDO_TRY(stage(batch));
  Device& device = backend().device();
  device.wait(device.compute(), there_);
  for (std::size_t i = 0; i < tops.size(); ++i) {
    backend().copy(tops[i]->count(), slots_[i].data(), tops[i]->data());
  }
  copied_ = device.record(device.compute());
  staged_.reset();
  ++step_;
  // One that cannot be read is an error of the pass that needs it.
  const std::uint64_t next = span_.at(step_);
  if (feed_->is_ready(next)) stage(next).ignore("it is read again when it is needed");
  read_ahead();
  return {};
}

// The memory that the feed gave is free, and its next one valid, when it has been copied.
Result<void> FeedLayer::stage(std::uint64_t batch) {
  Device& device = backend().device();
  device.wait(there_);
  staged_.reset();
  auto values = feed_->read(batch);
  if (!values) return error(values.error().message, values.error().code);
  device.wait(device.transfer(), copied_);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    device.queue_upload(device.transfer(), slots_[i].data(), (*values)[i]);
  }
  there_ = device.record(device.transfer());
  staged_ = batch;
  return {};
}

}  // namespace speedo
