// A net's weights from and to Caffe's NetParameter.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "base/log.hpp"
#include "core/blob_proto.hpp"
#include "core/net_impl.hpp"

namespace speedo {
namespace {

// One stored array and the parameter that receives it.
struct Assignment {
  const caffe::BlobProto* blob;
  Tensor* parameter;
};

// HDF5 files hold a shared parameter only under its owner.
bool is_absent(const caffe::LayerParameter& source, int index) {
  return index >= source.blobs_size() || source.blobs(index).ByteSizeLong() == 0;
}

std::string stored_shape(const caffe::BlobProto& blob) {
  const auto shape = shape_of(blob);
  return shape ? to_string(*shape) : shape.error().message;
}

bool holds_all_values(const caffe::BlobProto& blob, const Shape& shape) {
  return blob.data_size() == shape.count() || blob.double_data_size() == shape.count();
}

Error wrong_count(const Net::LayerView& view, int stored) {
  return {ErrorCode::kMismatch,
          fmt::format("layer '{}' ({}): the weights hold {} parameters for it, the net has {}",
                      view.layer->name(), view.layer->type(), stored, view.slots.size())};
}

// Appends what the stored layer gives to the net's, or says what does not fit.
Result<void> match_layer(const caffe::LayerParameter& source, const Net::LayerView& view,
                         std::span<const ParameterSlot> slots, std::vector<Assignment>& matches) {
  const std::vector<Tensor*>& parameters = view.layer->parameters();
  if (static_cast<std::size_t>(source.blobs_size()) > parameters.size()) {
    return wrong_count(view, source.blobs_size());
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const int index = static_cast<int>(i);
    const ParameterSlot& slot = slots[view.slots[i]];
    if (is_absent(source, index)) {
      if (slot.layer == view.layer->name() && slot.index == index) {
        return wrong_count(view, source.blobs_size());
      }
      continue;
    }
    const caffe::BlobProto& blob = source.blobs(index);
    const Shape& shape = parameters[i]->shape();
    if (!fits(blob, shape)) {
      return Error{
          ErrorCode::kMismatch,
          fmt::format("layer '{}' ({}): parameter {} has shape {} in the weights and {} in "
                      "the net; rename the layer to train it from scratch",
                      view.layer->name(), view.layer->type(), i, stored_shape(blob),
                      to_string(shape))};
    }
    if (!holds_all_values(blob, shape)) {
      return Error{
          ErrorCode::kData,
          fmt::format("layer '{}' ({}): the weights of parameter {} are incomplete: {} of "
                      "{} values",
                      view.layer->name(), view.layer->type(), i, blob.data_size(), shape.count())};
    }
    matches.push_back({&blob, parameters[i]});
  }
  return {};
}

// The net's layer of that name; of several, the one with parameters.
const Net::LayerView* find_layer(const std::vector<Net::LayerView>& views,
                                 const std::string& name) {
  const Net::LayerView* found = nullptr;
  for (const Net::LayerView& view : views) {
    if (view.layer->name() == name && (found == nullptr || !view.slots.empty())) {
      found = &view;
    }
  }
  return found;
}

}  // namespace

Result<void> Net::copy_weights_from(const caffe::NetParameter& source) {
  std::vector<Assignment> matches;
  for (const caffe::LayerParameter& layer : source.layer()) {
    if (const LayerView* view = find_layer(impl_->views, layer.name()); view != nullptr) {
      SPEEDO_TRY(match_layer(layer, *view, layout().slots(), matches));
    } else {
      SPEEDO_INFO("Ignoring source layer {}", layer.name());
    }
  }
  std::vector<float> values;
  for (const Assignment& match : matches) {
    values.resize(static_cast<std::size_t>(match.parameter->count()));
    SPEEDO_TRY(read_values(*match.blob, values));
    impl_->options.backend->device().upload(match.parameter->data(), values);
  }
  return {};
}

void Net::to_proto(caffe::NetParameter& target, bool with_diff) const {
  target.Clear();
  target.set_name(impl_->name);
  Backend& backend = *impl_->options.backend;
  auto source = impl_->messages.begin();
  for (const LayerView& view : impl_->views) {
    if (view.is_reorder) continue;
    caffe::LayerParameter& message = *target.add_layer();
    message = *source++;
    // Caffe writes down the weight that a loss has by default.
    if (message.loss_weight_size() == 0 && view.layer->default_loss_weight(0) != 0.0F) {
      message.add_loss_weight(view.layer->default_loss_weight(0));
    }
    for (const Tensor* parameter : view.layer->parameters()) {
      caffe::BlobProto& blob = *message.add_blobs();
      backend.device().download(set_shape_and_data(parameter->shape(), blob), parameter->data());
      if (with_diff) {
        backend.device().download(set_diff(parameter->shape(), blob), parameter->grad());
      }
    }
  }
}

}  // namespace speedo
