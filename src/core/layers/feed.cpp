#include "core/layers/feed.hpp"

#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "caffe.pb.h"

namespace speedo {

LayerArity FeedLayer::arity() const {
  LayerArity arity{.bottoms_min = 0, .bottoms_max = 0, .tops_min = 1, .tops_max = -1};
  const bool images = type() == "ImageData" || type() == "WindowData";
  if (images) arity.tops_min = 2;
  if (images || type() == "Data") arity.tops_max = 2;
  return arity;
}

Result<void> FeedLayer::setup(const LayerContext& layer_context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(layer_context, bottoms, tops));
  if (context().feeds == nullptr)
    return error("data layers cannot be used here: no data is at hand");
  FeedOptions options = context().feed_options;
  options.phase = context().phase;
  options.top_count = static_cast<int>(tops.size());
  auto feed = context().feeds->open(parameter_message(), options);
  if (!feed) return error(feed.error().message, feed.error().code);
  feed_ = std::move(feed).value();
  SPEEDO_ASSERT(feed_->shapes().size() == tops.size());
  return {};
}

Result<void> FeedLayer::reshape(Tensors, Tensors tops) {
  for (std::size_t i = 0; i < tops.size(); ++i) tops[i]->reshape(feed_->shapes()[i]);
  return {};
}

void FeedLayer::read_ahead() {
  for (std::uint64_t i = 0; i < kPrefetchBatches; ++i) feed_->will_need(span_.at(step_ + i));
}

void FeedLayer::set_batch_span(const BatchSpan& span) {
  span_ = span;
  step_ = 0;
  read_ahead();
}

Result<void> FeedLayer::forward(Tensors, Tensors tops) {
  auto values = feed_->read(span_.at(step_));
  if (!values) return error(values.error().message, values.error().code);
  ++step_;
  read_ahead();
  for (std::size_t i = 0; i < tops.size(); ++i) {
    backend().device().upload(tops[i]->data(), (*values)[i]);
  }
  return {};
}

}  // namespace speedo
