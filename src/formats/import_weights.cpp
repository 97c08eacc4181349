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

Result<void> read_blob(const SafetensorsFile& file, const StoredTensor& tensor,
                       const caffe::LayerParameter& layer, caffe::BlobProto& blob) {
  SPEEDO_ASSIGN(const Shape wanted, shape_of(blob));
  if (tensor.shape != wanted) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{}: tensor '{}' has the shape {}, layer '{}' ({}) needs {}",
                             file.name(), tensor.name, to_string(tensor.shape), layer.name(),
                             layer.type(), to_string(wanted))};
  }
  const std::span<float> values = set_shape_and_data(wanted, blob);
  SPEEDO_TRY(file.read(tensor, values));
  if (std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) {
    return {};
  }
  return Error{ErrorCode::kData,
               fmt::format("{}: tensor '{}' has values that are NaN or infinite as float32",
                           file.name(), tensor.name)};
}

// Of each parameter its owner and its number there.
using Owners = std::set<std::pair<std::string_view, int>>;

Owners owners_of(const ParameterLayout& layout) {
  Owners owners;
  for (const ParameterSlot& slot : layout.slots()) owners.emplace(slot.layer, slot.index);
  return owners;
}

}  // namespace

Result<ImportGaps> import_weights(const SafetensorsFile& file, Net& net) {
  TensorsLeft left;
  for (const StoredTensor& tensor : file.tensors()) left.emplace(tensor.name, &tensor);
  caffe::NetParameter model;
  net.to_proto(model, false);
  ImportGaps gaps;
  const Owners owners = owners_of(net.layout());
  // An owner's value stands where a layer that shares it has none.
  for (caffe::LayerParameter& layer : *model.mutable_layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      SPEEDO_ASSIGN(const StoredTensor* const tensor, take(layer, i, left));
      if (tensor != nullptr) {
        SPEEDO_TRY(read_blob(file, *tensor, layer, *layer.mutable_blobs(i)));
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

}  // namespace speedo
