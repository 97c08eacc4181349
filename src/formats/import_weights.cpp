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
                       const caffe::LayerParameter& layer, caffe::BlobProto& blob) {
  SPEEDO_ASSIGN(const Shape wanted, shape_of(blob));
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

Result<void> check_equal(const SafetensorsFile& file, const Given& first, const Given& second) {
  const auto& before = first.blob->data();
  const auto& after = second.blob->data();
  if (std::equal(before.begin(), before.end(), after.begin(), after.end())) return {};
  return Error{
      ErrorCode::kMismatch,
      fmt::format("{}: tensors '{}' and '{}' have different values, but are one parameter, "
                  "which layers of the net share",
                  file.name(), first.tensor->name, second.tensor->name)};
}

}  // namespace

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
        SPEEDO_TRY(read_blob(file, *tensor, layer, *layer.mutable_blobs(i)));
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
    ImportGaps& gaps) {
  TensorsLeft left;
  for (const StoredTensor& tensor : file.tensors()) {
    const bool is_left =
        std::find(gaps.surplus.begin(), gaps.surplus.end(), tensor.name) != gaps.surplus.end();
    if (is_left) left.emplace(tensor.name, &tensor);
  }
  std::vector<caffe::LayerParameter> read;
  for (const caffe::LayerParameter& layer : layers) {
    const std::string prefix = layer.name() + ".";
    const auto is_its = [&](const auto& each) {
      return each.first.starts_with(prefix) &&
             each.first.find('.', prefix.size()) == std::string::npos;
    };
    caffe::LayerParameter filled = layer;
    TensorsLeft rest = left;
    const auto count = std::count_if(left.begin(), left.end(), is_its);
    for (std::ptrdiff_t i = 0; i < count; ++i) filled.add_blobs();
    bool is_whole = count > 0;
    for (int i = 0; is_whole && i < filled.blobs_size(); ++i) {
      SPEEDO_ASSIGN(const StoredTensor* const tensor, take(filled, i, rest));
      is_whole = tensor != nullptr;
      if (is_whole) SPEEDO_TRY(read_values(file, *tensor, *filled.mutable_blobs(i)));
    }
    if (!is_whole) continue;
    left = std::move(rest);
    read.push_back(std::move(filled));
  }
  gaps.surplus.clear();
  for (const auto& [name, tensor] : left) gaps.surplus.push_back(name);
  return read;
}

}  // namespace speedo
