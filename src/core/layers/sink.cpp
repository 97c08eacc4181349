#include "core/layers/sink.hpp"

#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<void> SinkLayer::setup(const LayerContext& layer_context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(layer_context, bottoms, tops));
  SPEEDO_TRY(reshape(bottoms, tops));
  if (context().plan_only) return {};
  if (context().sinks == nullptr) {
    return error(
        "layers that write files cannot be used here; leave it out by include or exclude "
        "rules");
  }
  std::vector<Shape> shapes;
  for (const Tensor* bottom : bottoms) shapes.push_back(bottom->shape());
  auto sink = context().sinks->open(parameter_message(), shapes);
  if (!sink) return error(sink.error().message, sink.error().code);
  sink_ = std::move(sink).value();
  return {};
}

Result<void> SinkLayer::reshape(Tensors bottoms, Tensors) {
  const Shape& data = bottoms[0]->shape();
  const Shape& labels = bottoms[1]->shape();
  if (data.axes() > 0 && labels.axes() > 0 && data[0] == labels[0]) return {};
  return error(fmt::format("its bottoms need as many items: their shapes are {} and {}",
                           to_string(data), to_string(labels)));
}

Result<void> SinkLayer::forward(Tensors bottoms, Tensors) {
  if (!sink_) return error("its file is complete: nothing more can be written");
  const std::vector<float> data = bottoms[0]->values(backend());
  const std::vector<float> labels = bottoms[1]->values(backend());
  const BatchPart parts[] = {{bottoms[0]->shape(), data}, {bottoms[1]->shape(), labels}};
  auto written = sink_->write(parts);
  if (!written) return error(written.error().message, written.error().code);
  return {};
}

Result<void> SinkLayer::finish() {
  if (!sink_) return {};
  auto finished = sink_->finish();
  sink_.reset();
  if (!finished) return error(finished.error().message, finished.error().code);
  return {};
}

}  // namespace speedo
