#include "tools/scored_blobs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "caffe.pb.h"
#include "core/net/net_filter.hpp"

namespace speedo {

namespace {

const caffe::LayerParameter* first_of_type(const caffe::NetParameter& net, const char* type) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (layer.type() == type && layer.bottom_size() >= 2) return &layer;
  }
  return nullptr;
}

// The last layer that writes the blob.
const caffe::LayerParameter* maker_of(const caffe::NetParameter& net, const std::string& blob) {
  const caffe::LayerParameter* maker = nullptr;
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end()) {
      maker = &layer;
    }
  }
  return maker;
}

Result<ScoredBlobs> named_blobs(const caffe::NetParameter& net, const std::string& named) {
  const std::size_t comma = named.find(',');
  ScoredBlobs blobs;
  blobs.scores = named.substr(0, comma);
  blobs.labels = comma == std::string::npos ? "" : named.substr(comma + 1);
  if (blobs.scores.empty() || blobs.labels.empty()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--scores takes two blobs, SCORES,LABELS, not '{}'", named)};
  }
  for (const std::string& blob : {blobs.scores, blobs.labels}) {
    if (maker_of(net, blob) == nullptr) {
      return config_error(fmt::format("--scores: the net has no blob '{}' in phase TEST", blob));
    }
  }
  return blobs;
}

}  // namespace

Result<ScoredBlobs> find_scored_blobs(const caffe::NetParameter& net, const caffe::NetState& state,
                                      const std::string& named) {
  caffe::NetParameter filtered = net;
  SPEEDO_TRY(filter_layers(state, filtered));
  ScoredBlobs blobs;
  if (!named.empty()) {
    SPEEDO_ASSIGN(blobs, named_blobs(filtered, named));
  } else if (const auto* accuracy = first_of_type(filtered, "Accuracy")) {
    const caffe::AccuracyParameter& options = accuracy->accuracy_param();
    blobs = {accuracy->bottom(0), accuracy->bottom(1), options.axis(), {}, false};
    if (options.has_ignore_label()) blobs.ignored = options.ignore_label();
  } else if (const auto* loss = first_of_type(filtered, "SoftmaxWithLoss")) {
    blobs = {loss->bottom(0), loss->bottom(1), loss->softmax_param().axis(), {}, false};
    if (loss->loss_param().has_ignore_label()) blobs.ignored = loss->loss_param().ignore_label();
  } else {
    return config_error(
        "the net has neither an Accuracy nor a SoftmaxWithLoss layer in phase TEST, which say what "
        "its answers are: name its blobs with --scores SCORES,LABELS");
  }
  const caffe::LayerParameter* maker = maker_of(filtered, blobs.scores);
  blobs.has_probabilities = maker != nullptr && maker->type() == "Softmax";
  return blobs;
}

}  // namespace speedo
