#include "golden/exact_blobs.hpp"

#include <algorithm>

#include "caffe.pb.h"

namespace speedo::golden {
namespace {

// Types that move values or count places but do no rounding.
const std::set<std::string>& moving_types() {
  static const std::set<std::string> types{
      "Input", "Split",   "Concat", "Slice",   "Flatten", "Reshape",      "Crop",
      "Tile",  "ArgMax",  "Filter", "Silence", "Im2col",  "BatchReindex", "Threshold",
      "Data",  "HDF5Data", "MemoryData"};
  return types;
}

bool is_max_pooling(const caffe::LayerParameter* layer) {
  return layer != nullptr && layer->type() == "Pooling" &&
         layer->pooling_param().pool() == caffe::PoolingParameter::MAX;
}

bool draws(const Net& net, const caffe::LayerParameter* layer) {
  if (layer == nullptr) return false;
  if (layer->type() == "DummyData") return true;
  const bool may_draw = layer->type() == "Dropout" ||
                        layer->pooling_param().pool() == caffe::PoolingParameter::STOCHASTIC;
  return may_draw && net.phase() == Phase::kTrain;
}

void set_member(std::set<std::string>& set, const std::string& name, bool member) {
  if (member) {
    set.insert(name);
  } else {
    set.erase(name);
  }
}

}  // namespace

const caffe::LayerParameter* find_layer(const caffe::NetParameter& message,
                                        const std::string& name) {
  for (const caffe::LayerParameter& layer : message.layer()) {
    if (layer.name() == name) return &layer;
  }
  return nullptr;
}

BlobKinds blob_kinds(const Net& net, const caffe::NetParameter& message) {
  BlobKinds kinds;
  for (const Net::LayerView& view : net.layers()) {
    const caffe::LayerParameter* layer = find_layer(message, view.layer->name());
    const auto is_exact = [&](const std::string& name) { return kinds.exact.contains(name); };
    const auto is_random = [&](const std::string& name) { return kinds.random.contains(name); };
    const auto& bottoms = view.bottom_names;
    const bool moves = moving_types().contains(view.layer->type()) || is_max_pooling(layer);
    const bool exact = moves && std::all_of(bottoms.begin(), bottoms.end(), is_exact);
    const bool random =
        draws(net, layer) || std::any_of(bottoms.begin(), bottoms.end(), is_random);
    for (const std::string& top : view.top_names) {
      set_member(kinds.exact, top, exact);
      set_member(kinds.random, top, random);
    }
  }
  return kinds;
}

}  // namespace speedo::golden
