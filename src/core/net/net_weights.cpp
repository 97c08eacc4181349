// A net's weights from and to Caffe's NetParameter.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "base/log.hpp"
#include "core/blob_proto.hpp"
#include "core/net/net_impl.hpp"
#include "core/shown_names.hpp"

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

Error wrong_count(const StoredLayer& receiver, int stored) {
  return {ErrorCode::kMismatch,
          fmt::format("layer '{}' ({}): the weights hold {} parameters for it, the net has {}",
                      receiver.name, receiver.type, stored, receiver.slots.size())};
}

// Appends what the stored layer gives to the net's, or says what does not fit.
Result<void> match_layer(const caffe::LayerParameter& source, const StoredLayer& receiver,
                         std::span<const ParameterSlot> slots, std::vector<Assignment>& matches) {
  const std::vector<Tensor*>& parameters = receiver.parameters;
  if (static_cast<std::size_t>(source.blobs_size()) > parameters.size()) {
    return wrong_count(receiver, source.blobs_size());
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const int index = static_cast<int>(i);
    const ParameterSlot& slot = slots[receiver.slots[i]];
    if (is_absent(source, index)) {
      if (slot.layer == receiver.name && slot.index == index) {
        return wrong_count(receiver, source.blobs_size());
      }
      continue;
    }
    const caffe::BlobProto& blob = source.blobs(index);
    const Shape& shape = parameters[i]->shape();
    if (!fits(blob, shape)) {
      return Error{
          ErrorCode::kMismatch,
          fmt::format("layer '{}' ({}): parameter {} has shape {} in the weights and {} in "
                      "the net: they are of another net, or of inputs of another shape; a layer "
                      "that is to be trained from scratch needs another name",
                      receiver.name, receiver.type, i, stored_shape(blob), to_string(shape))};
    }
    if (!holds_all_values(blob, shape)) {
      return Error{ErrorCode::kData,
                   fmt::format("layer '{}' ({}): the weights of parameter {} are incomplete: {} of "
                               "{} values",
                               receiver.name, receiver.type, i, blob.data_size(), shape.count())};
    }
    matches.push_back({&blob, parameters[i]});
  }
  return {};
}

void write_parameters(Backend& backend, const std::vector<Tensor*>& parameters, bool with_diff,
                      caffe::LayerParameter& message) {
  for (const Tensor* parameter : parameters) {
    caffe::BlobProto& blob = *message.add_blobs();
    backend.device().download(set_shape_and_data(parameter->shape(), blob), parameter->data());
    if (with_diff) {
      backend.device().download(set_diff(parameter->shape(), blob), parameter->grad());
    }
  }
}

}  // namespace

// The net's layers by name; of several of one name, the one with parameters.
std::optional<StoredLayer> Net::Impl::find_receiver(const std::string& layer) const {
  for (const Expansion& expansion : expansions) {
    if (expansion.message.name() != layer) continue;
    return StoredLayer{layer, expansion.message.type(), parameters_of(expansion), expansion.slots};
  }
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i]->name() == layer && (!found || !layers[i]->parameters().empty())) found = i;
  }
  if (!found) return std::nullopt;
  const Layer& it = *layers[*found];
  return StoredLayer{layer, it.type(), it.parameters(), placed_slots[*found]};
}

std::vector<Tensor*> Net::Impl::parameters_of(const Expansion& expansion) const {
  std::vector<Tensor*> found;
  for (int number = 0; number < expansion.parameter_count(); ++number) {
    const SlotUse user = expansion.user_of(number);
    found.push_back(layers[user.layer]->parameters()[static_cast<std::size_t>(user.index)]);
  }
  return found;
}

Result<void> Net::copy_weights_from(const caffe::NetParameter& source) {
  std::vector<Assignment> matches;
  for (const caffe::LayerParameter& layer : source.layer()) {
    const auto receiver = impl_->find_receiver(layer.name());
    if (!receiver) {
      SPEEDO_INFO("Ignoring source layer {}", layer.name());
      continue;
    }
    const bool is_given = impl_->placed != impl_->parameters && receiver->slots.empty();
    if (is_given) continue;
    SPEEDO_TRY(match_layer(layer, *receiver, impl_->placed->layout.slots(), matches));
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
  for (std::size_t layer = 0; layer < impl_->layers.size(); ++layer) {
    const Impl::Expansion* const expansion = impl_->expansion_of(layer);
    if (expansion != nullptr && layer != expansion->first) continue;
    caffe::LayerParameter& message = *target.add_layer();
    message = expansion != nullptr ? expansion->message : impl_->messages[layer];
    show_names(message);
    const Layer& it = *impl_->layers[layer];
    // Caffe writes down the weight that a loss has by default.
    if (expansion == nullptr && message.loss_weight_size() == 0 &&
        it.default_loss_weight(0) != 0.0F) {
      message.add_loss_weight(it.default_loss_weight(0));
    }
    write_parameters(backend,
                     expansion != nullptr ? impl_->parameters_of(*expansion) : it.parameters(),
                     with_diff, message);
  }
}

}  // namespace speedo
