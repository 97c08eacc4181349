#include "golden/snapshot_check.hpp"

#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "golden/exact_blobs.hpp"

namespace speedo::golden {
namespace {

using Values = google::protobuf::RepeatedField<float>;

std::span<const float> view(const Values& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

std::vector<std::int64_t> dims_of(const caffe::BlobProto& blob) {
  if (!blob.has_shape()) return {blob.num(), blob.channels(), blob.height(), blob.width()};
  return {blob.shape().dim().begin(), blob.shape().dim().end()};
}

void compare_blob(const std::string& name, const caffe::BlobProto& ours,
                  const caffe::BlobProto& reference, Comparison& comparison) {
  comparison.require(dims_of(ours) == dims_of(reference), name + " has another shape");
  comparison.values(name, view(ours.data()), view(reference.data()));
  comparison.values(name + " diff", view(ours.diff()), view(reference.diff()));
}

void compare_layer(const caffe::LayerParameter& ours, const caffe::LayerParameter& reference,
                   bool whole, Comparison& comparison) {
  const std::string name = "snapshot layer '" + reference.name() + "'";
  const auto same = [](const auto& a, const auto& b) {
    return std::vector<std::string>(a.begin(), a.end()) ==
           std::vector<std::string>(b.begin(), b.end());
  };
  if (whole) {
    comparison.require(ours.type() == reference.type(), name + " has another type");
    comparison.require(same(ours.bottom(), reference.bottom()), name + " has other bottoms");
    comparison.require(same(ours.top(), reference.top()), name + " has other tops");
  }
  comparison.require(ours.blobs_size() == reference.blobs_size(),
                     fmt::format("{} has {} blobs, not {}", name, ours.blobs_size(),
                                 reference.blobs_size()));
  for (int i = 0; i < ours.blobs_size() && i < reference.blobs_size(); ++i) {
    compare_blob(fmt::format("{} blob {}", name, i), ours.blobs(i), reference.blobs(i),
                 comparison);
  }
}

}  // namespace

void compare_snapshots(const Snapshot& ours, const Snapshot& reference, bool whole,
                       Comparison& comparison) {
  comparison.require(ours.model.layer_size() == reference.model.layer_size(),
                     fmt::format("the snapshot has {} layers, not {}", ours.model.layer_size(),
                                 reference.model.layer_size()));
  for (const caffe::LayerParameter& layer : reference.model.layer()) {
    const caffe::LayerParameter* found = find_layer(ours.model, layer.name());
    comparison.require(found != nullptr, "the snapshot has no layer '" + layer.name() + "'");
    if (found != nullptr) compare_layer(*found, layer, whole, comparison);
  }
  const caffe::SolverState& a = ours.state;
  const caffe::SolverState& b = reference.state;
  comparison.require(a.iter() == b.iter(), fmt::format("state iter is {}", a.iter()));
  comparison.require(a.current_step() == b.current_step(),
                     fmt::format("state current_step is {}, not {}", a.current_step(),
                                 b.current_step()));
  comparison.require(a.history_size() == b.history_size(),
                     fmt::format("state has {} history blobs, not {}", a.history_size(),
                                 b.history_size()));
  for (int i = 0; i < a.history_size() && i < b.history_size(); ++i) {
    compare_blob(fmt::format("history {}", i), a.history(i), b.history(i), comparison);
  }
}

}  // namespace speedo::golden
