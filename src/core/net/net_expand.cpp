// Layers that become several before they are built: names, parameters and loss weights of a graph
// that stands for one layer of the prototxt.
#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "core/layers/registry.hpp"
#include "core/net/net_impl.hpp"
#include "core/net/net_split.hpp"

namespace speedo {
namespace {

// The message as it is shown to whoever expands it.
caffe::LayerParameter with_local_names(const caffe::LayerParameter& message) {
  caffe::LayerParameter local = message;
  local.clear_blobs();
  for (int i = 0; i < local.bottom_size(); ++i) local.set_bottom(i, fmt::format("bottom{}", i));
  for (int i = 0; i < local.top_size(); ++i) local.set_top(i, fmt::format("top{}", i));
  return local;
}

// The name of a blob of the graph in the net.
std::string net_name(const caffe::LayerParameter& message, const caffe::LayerParameter& local,
                     const std::string& blob) {
  for (int i = 0; i < local.bottom_size(); ++i) {
    if (local.bottom(i) == blob) return message.bottom(i);
  }
  for (int i = 0; i < local.top_size(); ++i) {
    if (local.top(i) == blob) return message.top(i);
  }
  return message.name() + "/" + blob;
}

void give_net_names(const caffe::LayerParameter& message, const caffe::LayerParameter& local,
                    caffe::LayerParameter& layer) {
  layer.set_name(message.name() + "/" + layer.name());
  for (std::string& blob : *layer.mutable_bottom()) blob = net_name(message, local, blob);
  for (std::string& blob : *layer.mutable_top()) blob = net_name(message, local, blob);
  layer.set_phase(message.phase());
}

// Puts what the prototxt says of the layer's parameters in the place of their numbers, and returns
// these.
std::vector<int> give_parameters(const caffe::LayerParameter& message,
                                 caffe::LayerParameter& layer) {
  std::vector<int> numbers;
  for (caffe::ParamSpec& spec : *layer.mutable_param()) {
    const std::string text = spec.name();
    int number = -1;
    std::from_chars(text.data(), text.data() + text.size(), number);
    SPEEDO_ASSERT(number >= 0 && text == std::to_string(number));
    spec = number < message.param_size() ? message.param(number) : caffe::ParamSpec();
    if (spec.name().empty()) spec.set_name(message.name() + "/" + text);
    if (message.blobs_size() > 0) {
      caffe::BlobProto* blob = layer.add_blobs();
      if (number < message.blobs_size()) *blob = message.blobs(number);
    }
    numbers.push_back(number);
  }
  return numbers;
}

void give_loss_weights(const caffe::LayerParameter& message, caffe::LayerParameter& layer) {
  for (int top = 0; top < layer.top_size(); ++top) {
    for (int i = 0; i < message.loss_weight_size(); ++i) {
      if (message.top(i) != layer.top(top)) continue;
      while (layer.loss_weight_size() < layer.top_size()) layer.add_loss_weight(0.0F);
      layer.set_loss_weight(top, message.loss_weight(i));
    }
  }
}

// Whether a bottom gets a gradient is the matter of the layer that reads it, whose other bottoms
// are of the net too. Requires: one reader a blob; `layer` has the names of `local`.
Result<void> give_propagation(const caffe::LayerParameter& message,
                              const caffe::LayerParameter& local, caffe::LayerParameter& layer) {
  if (message.propagate_down_size() == 0) return {};
  for (const std::string& bottom : layer.bottom()) {
    const auto place = std::find(local.bottom().begin(), local.bottom().end(), bottom);
    if (place == local.bottom().end()) continue;
    const auto index = static_cast<int>(place - local.bottom().begin());
    layer.add_propagate_down(message.propagate_down(index));
  }
  if (layer.propagate_down_size() == 0 || layer.propagate_down_size() == layer.bottom_size()) {
    return {};
  }
  return layer_error(message,
                     "stands for several layers, where propagate_down has no place; give it to "
                     "the layers before",
                     ErrorCode::kUnsupported);
}

Result<void> check_expandable(const caffe::LayerParameter& message) {
  SPEEDO_TRY(check_propagate_down(message));
  if (message.loss_weight_size() != 0 && message.loss_weight_size() != message.top_size()) {
    return wrong_loss_weights(message, static_cast<std::size_t>(message.top_size()));
  }
  for (const std::string& bottom : message.bottom()) {
    if (std::count(message.top().begin(), message.top().end(), bottom) > 0) {
      return layer_error(message, "cannot work in place; give its top a name of its own");
    }
  }
  return {};
}

}  // namespace

const ExpandLayer* Net::Impl::find_expansion(const std::string& type) const {
  const auto own = options.expansions.find(type);
  return own != options.expansions.end() ? &own->second : registered_expansion(type);
}

// The layers of an expansion for the shapes that its bottoms have now, one reader a blob.
Result<void> Net::Impl::write_graph(const caffe::LayerParameter& message,
                                    const caffe::LayerParameter& local,
                                    caffe::NetParameter& expanded) const {
  std::vector<Shape> shapes;
  for (const std::string& bottom : message.bottom()) {
    shapes.push_back(blobs[blob_index.at(bottom)].tensor->shape());
  }
  if (auto done = (*find_expansion(message.type()))(local, shapes, expanded); !done) {
    return layer_error(message, done.error().message, done.error().code);
  }
  return insert_splits(expanded, {local.bottom().begin(), local.bottom().end()});
}

Result<void> Net::Impl::expand_layer(const caffe::LayerParameter& message) {
  SPEEDO_TRY(check_expandable(message));
  const caffe::LayerParameter local = with_local_names(message);
  caffe::NetParameter expanded;
  SPEEDO_TRY(write_graph(message, local, expanded));
  Expansion expansion{message, expanded.SerializeAsString(), built.size(), {}, {}};
  for (caffe::LayerParameter& layer : *expanded.mutable_layer()) {
    SPEEDO_ASSERT(find_expansion(layer.type()) == nullptr);
    SPEEDO_TRY(give_propagation(message, local, layer));
    give_net_names(message, local, layer);
    expansion.numbers.push_back(give_parameters(message, layer));
    give_loss_weights(message, layer);
    SPEEDO_TRY(add_layer(layer));
    built.back().expanded_from = message.name();
    const std::size_t parameter_count = built.back().layer->parameter_requests().size();
    SPEEDO_ASSERT(expansion.numbers.back().size() == parameter_count);
    messages.push_back(std::move(layer));
  }
  for (const std::string& bottom : message.bottom()) SPEEDO_ASSERT(unread.count(bottom) == 0);
  for (const std::string& top : message.top()) SPEEDO_ASSERT(unread.count(top) == 1);
  if (message.param_size() > expansion.parameter_count()) {
    return too_many_params(message, static_cast<std::size_t>(expansion.parameter_count()));
  }
  expansions.push_back(std::move(expansion));
  return {};
}

// Another shape may need other layers, which the net cannot take in any more.
Result<void> Net::Impl::check_expansion(const Expansion& expansion) const {
  const caffe::LayerParameter& message = expansion.message;
  caffe::NetParameter expanded;
  SPEEDO_TRY(write_graph(message, with_local_names(message), expanded));
  if (expanded.SerializeAsString() == expansion.graph) return {};
  return layer_error(message,
                     "stands for layers that were made for other shapes of its bottoms: build the "
                     "net anew");
}

int Net::Impl::Expansion::parameter_count() const {
  int count = 0;
  for (const std::vector<int>& layer : numbers) {
    for (const int number : layer) count = std::max(count, number + 1);
  }
  return count;
}

// The first of the layers that have the parameter, and its place there.
Net::Impl::SlotUse Net::Impl::Expansion::user_of(int parameter) const {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto place = std::find(numbers[i].begin(), numbers[i].end(), parameter);
    if (place != numbers[i].end()) {
      return {first + i, static_cast<int>(place - numbers[i].begin())};
    }
  }
  SPEEDO_ASSERT(!"parameters are numbered without gaps");
  return {};
}

void Net::Impl::note_expanded_slots() {
  for (Expansion& expansion : expansions) {
    for (int number = 0; number < expansion.parameter_count(); ++number) {
      const SlotUse user = expansion.user_of(number);
      if (placed_slots[user.layer].empty()) break;
      expansion.slots.push_back(placed_slots[user.layer][static_cast<std::size_t>(user.index)]);
    }
  }
}

const Net::Impl::Expansion* Net::Impl::expansion_of(std::size_t layer) const {
  for (const Expansion& expansion : expansions) {
    if (layer >= expansion.first && layer < expansion.first + expansion.numbers.size()) {
      return &expansion;
    }
  }
  return nullptr;
}

}  // namespace speedo
