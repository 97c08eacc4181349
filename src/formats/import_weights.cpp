#include "formats/import_weights.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/blob_proto.hpp"
#include "core/net/net_filter.hpp"
#include "formats/weight_names.hpp"

namespace speedo {

namespace {

using TensorsLeft = std::map<std::string, const StoredTensor*>;

// The tensor of a layer's parameter, taken out of those that are left; null: none.
Result<const StoredTensor*> take(const caffe::LayerParameter& layer, int index, TensorsLeft& left) {
  const std::string names[] = {weight_name(layer, index, layer.blobs_size()),
                               numbered_weight_name(layer.name(), index)};
  const StoredTensor* found = nullptr;
  for (const std::string& name : names) {
    const auto place = left.find(name);
    if (place == left.end()) continue;
    if (found != nullptr) {
      return Error{ErrorCode::kMismatch,
                   fmt::format("layer '{}' ({}): parameter {} is there twice, as '{}' and as '{}'",
                               layer.name(), layer.type(), index, found->name, name)};
    }
    found = place->second;
    left.erase(place);
  }
  return found;
}

Result<void> read_values(const SafetensorsFile& file, const StoredTensor& tensor,
                         caffe::BlobProto& blob) {
  const std::span<float> values = set_shape_and_data(tensor.shape, blob);
  SPEEDO_TRY(file.read(tensor, values));
  if (std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) {
    return {};
  }
  return Error{ErrorCode::kData,
               fmt::format("{}: tensor '{}' has values that are NaN or infinite as float32",
                           file.name(), tensor.name)};
}

Result<void> read_blob(const SafetensorsFile& file, const StoredTensor& tensor,
                       const caffe::LayerParameter& layer, const Shape& wanted,
                       caffe::BlobProto& blob) {
  if (tensor.shape == wanted) return read_values(file, tensor, blob);
  return Error{ErrorCode::kMismatch,
               fmt::format("{}: tensor '{}' has the shape {}, layer '{}' ({}) needs {}",
                           file.name(), tensor.name, to_string(tensor.shape), layer.name(),
                           layer.type(), to_string(wanted))};
}

// Of each parameter its owner and its number there.
using Owners = std::set<std::pair<std::string_view, int>>;

Owners owners_of(const ParameterLayout& layout) {
  Owners owners;
  for (const ParameterSlot& slot : layout.slots()) owners.emplace(slot.layer, slot.index);
  return owners;
}

// Where each layer's parameters lie in the net. Of layers that are computed in parts nothing is
// known.
using Slots = std::map<std::pair<std::string_view, int>, std::size_t>;

Slots slots_of(const Net& net) {
  Slots slots;
  for (const Net::LayerView& view : net.layers()) {
    if (!view.expanded_from.empty()) continue;
    for (std::size_t i = 0; i < view.slots.size(); ++i) {
      slots.emplace(std::pair(std::string_view(view.layer->name()), static_cast<int>(i)),
                    view.slots[i]);
    }
  }
  return slots;
}

// What was read for a parameter.
struct Given {
  const StoredTensor* tensor;
  const caffe::BlobProto* blob;
};

bool have_equal_values(const caffe::BlobProto& one, const caffe::BlobProto& other) {
  return std::equal(one.data().begin(), one.data().end(), other.data().begin(), other.data().end());
}

Result<void> check_equal(const SafetensorsFile& file, const Given& first, const Given& second) {
  if (have_equal_values(*first.blob, *second.blob)) return {};
  return Error{
      ErrorCode::kMismatch,
      fmt::format("{}: tensors '{}' and '{}' have different values, but are one parameter, "
                  "which layers of the net share",
                  file.name(), first.tensor->name, second.tensor->name)};
}

bool is_of(std::string_view tensor, const std::string& layer) {
  const std::string prefix = layer + ".";
  return tensor.starts_with(prefix) && tensor.find('.', prefix.size()) == std::string_view::npos;
}

// Moves a layer's parameters from those that are left into `layer`, whose shapes may be known.
// Returns the names of those that are not there.
Result<std::vector<std::string>> take_all(const SafetensorsFile& file, int count,
                                          const std::vector<Shape>* shapes, TensorsLeft& left,
                                          caffe::LayerParameter& layer) {
  for (int i = 0; i < count; ++i) layer.add_blobs();
  std::vector<std::string> missing;
  for (int i = 0; i < count; ++i) {
    SPEEDO_ASSIGN(const StoredTensor* const tensor, take(layer, i, left));
    if (tensor == nullptr) {
      missing.push_back(weight_name(layer, i, count));
      continue;
    }
    const Shape& wanted = shapes ? (*shapes)[static_cast<std::size_t>(i)] : tensor->shape;
    SPEEDO_TRY(read_blob(file, *tensor, layer, wanted, *layer.mutable_blobs(i)));
  }
  return missing;
}

}  // namespace

LayerShapes parameter_shapes(const Net& net) {
  LayerShapes shapes;
  for (const Net::LayerView& view : net.layers()) {
    if (!view.expanded_from.empty()) continue;
    // Of several of one name it is the one with parameters that has a file's.
    std::vector<Shape>& known = shapes[view.layer->name()];
    if (!known.empty()) continue;
    for (const Tensor* const parameter : view.layer->parameters()) {
      known.push_back(parameter->shape());
    }
  }
  return shapes;
}

Result<ImportGaps> import_weights(const SafetensorsFile& file, Net& net) {
  TensorsLeft left;
  for (const StoredTensor& tensor : file.tensors()) left.emplace(tensor.name, &tensor);
  caffe::NetParameter model;
  net.to_proto(model, false);
  ImportGaps gaps;
  const Owners owners = owners_of(net.layout());
  const Slots slots = slots_of(net);
  std::map<std::size_t, Given> given;
  // An owner's value stands where a layer that shares it has none.
  for (caffe::LayerParameter& layer : *model.mutable_layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      SPEEDO_ASSIGN(const StoredTensor* const tensor, take(layer, i, left));
      if (tensor != nullptr) {
        SPEEDO_ASSIGN(const Shape wanted, shape_of(layer.blobs(i)));
        SPEEDO_TRY(read_blob(file, *tensor, layer, wanted, *layer.mutable_blobs(i)));
        const auto slot = slots.find({layer.name(), i});
        if (slot == slots.end()) continue;
        const Given now{tensor, &layer.blobs(i)};
        SPEEDO_TRY(check_equal(file, given.emplace(slot->second, now).first->second, now));
      } else if (owners.contains({layer.name(), i})) {
        gaps.missing.push_back(weight_name(layer, i, layer.blobs_size()));
      } else {
        layer.mutable_blobs(i)->Clear();
      }
    }
  }
  for (const auto& [name, tensor] : left) gaps.surplus.push_back(name);
  SPEEDO_TRY(net.copy_weights_from(model));
  return gaps;
}

Result<std::vector<caffe::LayerParameter>> import_others(
    const SafetensorsFile& file, const std::vector<caffe::LayerParameter>& layers,
    const LayerShapes& shapes, ImportGaps& gaps) {
  TensorsLeft left;
  for (const StoredTensor& tensor : file.tensors()) {
    const bool is_left =
        std::find(gaps.surplus.begin(), gaps.surplus.end(), tensor.name) != gaps.surplus.end();
    if (is_left) left.emplace(tensor.name, &tensor);
  }
  std::vector<caffe::LayerParameter> read;
  for (const caffe::LayerParameter& layer : layers) {
    const auto there = std::count_if(left.begin(), left.end(), [&](const auto& each) {
      return is_of(each.first, layer.name());
    });
    const auto known = shapes.find(layer.name());
    const bool is_known = known != shapes.end();
    const auto count = is_known ? static_cast<int>(known->second.size()) : static_cast<int>(there);
    if (there == 0 || count == 0) continue;
    caffe::LayerParameter filled = layer;
    TensorsLeft rest = left;
    SPEEDO_ASSIGN(const std::vector<std::string> missing,
                  take_all(file, count, is_known ? &known->second : nullptr, rest, filled));
    if (missing.empty()) {
      read.push_back(std::move(filled));
    } else if (is_known && rest.size() < left.size()) {
      gaps.missing.insert(gaps.missing.end(), missing.begin(), missing.end());
      for (const auto& [name, tensor] : left) {
        if (!rest.contains(name)) gaps.partial.push_back(name);
      }
    } else {
      continue;
    }
    left = std::move(rest);
  }
  gaps.surplus.clear();
  for (const auto& [name, tensor] : left) gaps.surplus.push_back(name);
  return read;
}

Result<void> check_shared(const caffe::NetParameter& net, const caffe::NetState& state,
                          const caffe::NetParameter& model,
                          const std::vector<std::string>& missing) {
  caffe::NetParameter filtered = net;
  caffe::NetState whole_state = state;
  for (const std::string& stage : net.state().stage()) whole_state.add_stage(stage);
  SPEEDO_TRY(filter_layers(whole_state, filtered));
  std::map<std::string_view, const caffe::LayerParameter*> values;
  for (const caffe::LayerParameter& layer : model.layer()) values.emplace(layer.name(), &layer);
  std::map<std::string_view, std::pair<std::string, const caffe::BlobProto*>> first;
  for (const caffe::LayerParameter& layer : filtered.layer()) {
    const auto found = values.find(layer.name());
    if (found == values.end()) continue;
    const caffe::LayerParameter& stored = *found->second;
    for (int i = 0; i < std::min(layer.param_size(), stored.blobs_size()); ++i) {
      const std::string& shared = layer.param(i).name();
      const std::string name = weight_name(stored, i, stored.blobs_size());
      const bool is_missing = std::find(missing.begin(), missing.end(), name) != missing.end();
      if (shared.empty() || is_missing) continue;
      const auto& before = first.try_emplace(shared, name, &stored.blobs(i)).first->second;
      if (have_equal_values(*before.second, stored.blobs(i))) continue;
      return Error{ErrorCode::kMismatch,
                   fmt::format("'{}' and '{}' have different values, but are one parameter, '{}', "
                               "which layers of the net share",
                               before.first, name, shared)};
    }
  }
  return {};
}

}  // namespace speedo
