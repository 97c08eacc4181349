// Data-set cases: the tops of a data layer, batch by batch. Where Caffe drew crops and mirrors,
// every image must be some crop, mirrored or not, of the image it comes from.

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/hdf5_attributes.hpp"
#include "golden/golden_case.hpp"
#include "support/temp_dir.hpp"

namespace speedo::golden {
namespace {

namespace fs = std::filesystem;

Result<std::unique_ptr<Net>> make_net(const caffe::NetParameter& message, Phase phase,
                                      const World& world) {
  NetOptions options;
  options.phase = phase;
  options.backend = world.backend;
  options.feeds = world.feeds;
  options.sinks = world.sinks;
  options.base = fs::current_path();
  options.seed = 1701;
  options.keep_blobs = true;
  return Net::create(message, options);
}

// The blobs of one pass over the net, on the host.
struct Images {
  Shape shape;
  std::vector<float> values;

  // Element (y, x) of channel c of image n.
  float at(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) const {
    return values[static_cast<std::size_t>(((n * shape[1] + c) * shape[2] + y) * shape[3] + x)];
  }
};

Images images_of(const Net& net, const std::string& blob) {
  const Tensor& tensor = *net.blob(blob);
  return {tensor.shape(), tensor.values(net.backend())};
}

using Placement = std::tuple<std::int64_t, std::int64_t, bool>;  // y, x, mirrored

bool is_crop(const Images& part, const Images& whole, std::int64_t n, const Placement& placement) {
  const auto [top, left, mirrored] = placement;
  const std::int64_t width = part.shape[3];
  for (std::int64_t c = 0; c < part.shape[1]; ++c) {
    for (std::int64_t y = 0; y < part.shape[2]; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t from = left + (mirrored ? width - 1 - x : x);
        if (part.at(n, c, y, x) != whole.at(n, c, top + y, from)) return false;
      }
    }
  }
  return true;
}

// Where image n of `part` lies in `whole`, added to `found`; false if nowhere.
bool place(const Images& part, const Images& whole, std::int64_t n, std::set<Placement>& found) {
  for (std::int64_t y = 0; y + part.shape[2] <= whole.shape[2]; ++y) {
    for (std::int64_t x = 0; x + part.shape[3] <= whole.shape[3]; ++x) {
      for (const bool mirrored : {false, true}) {
        if (!is_crop(part, whole, n, {y, x, mirrored})) continue;
        found.insert({y, x, mirrored});
        return true;
      }
    }
  }
  return false;
}

Result<void> check_crops(const caffe::NetParameter& message, Net& net, std::int64_t batches,
                         const World& world, Comparison& comparison) {
  caffe::NetParameter plain = message;
  for (caffe::LayerParameter& layer : *plain.mutable_layer()) {
    layer.mutable_transform_param()->clear_crop_size();
    layer.mutable_transform_param()->clear_mirror();
  }
  SPEEDO_ASSIGN(const std::unique_ptr<Net> whole_net, make_net(plain, Phase::kTest, world));
  const std::string& top = message.layer(0).top(0);
  std::set<Placement> placements;
  for (std::int64_t b = 0; b < batches; ++b) {
    SPEEDO_TRY(net.forward());
    SPEEDO_TRY(whole_net->forward());
    const Images part = images_of(net, top);
    const Images whole = images_of(*whole_net, top);
    for (std::int64_t n = 0; n < part.shape[0]; ++n) {
      comparison.require(place(part, whole, n, placements),
                         fmt::format("batch {} image {} is no crop of its record", b, n));
    }
  }
  comparison.require(placements.size() > 1, "every image has the same crop and mirroring");
  return {};
}

Result<void> compare_batch(const Net& net, const Hdf5Reader& expected, const std::string& group,
                           Comparison& comparison) {
  SPEEDO_ASSIGN(const std::vector<std::string> tops, expected.children(group));
  for (const std::string& top : tops) {
    const std::string dataset = group + "/" + top;
    const Tensor* blob = net.blob(top);
    if (blob == nullptr) return Error{ErrorCode::kMismatch, "the net has no blob '" + top + "'"};
    SPEEDO_ASSIGN(const std::vector<std::int64_t> dims, expected.dims(dataset));
    comparison.require(dims == blob->shape().dims(),
                       fmt::format("{} has the shape {}", dataset, to_string(blob->shape())));
    SPEEDO_ASSIGN(const std::vector<float> reference, expected.read_floats(dataset));
    comparison.values(dataset, blob->values(net.backend()), reference);
  }
  return {};
}

Result<Phase> phase_of(const Hdf5Reader& expected) {
  if (!has_attribute(expected, "phase")) return Phase::kTest;
  SPEEDO_ASSIGN(const std::string phase, string_attribute(expected, "phase"));
  return phase == "TRAIN" ? Phase::kTrain : Phase::kTest;
}

// What Caffe took its batches from, one after another, which must outlive the net's passes.
struct GivenArrays {
  std::vector<float> data, labels;
};

Result<void> append(const Hdf5Reader& expected, const std::string& dataset,
                    std::vector<float>& values) {
  SPEEDO_ASSIGN(const std::vector<float> more, expected.read_floats(dataset));
  values.insert(values.end(), more.begin(), more.end());
  return {};
}

// A MemoryData layer is given the batches up to the first that comes again.
Result<GivenArrays> give_arrays(const caffe::LayerParameter& layer, std::int64_t batches,
                                const Hdf5Reader& expected, Net& net) {
  GivenArrays arrays;
  std::vector<float> first;
  SPEEDO_TRY(append(expected, "batch/0/" + layer.top(0), first));
  for (std::int64_t b = 0; b < batches; ++b) {
    const std::string group = fmt::format("batch/{}/", b);
    SPEEDO_ASSIGN(const std::vector<float> batch, expected.read_floats(group + layer.top(0)));
    if (b > 0 && batch == first) break;
    SPEEDO_TRY(append(expected, group + layer.top(0), arrays.data));
    SPEEDO_TRY(append(expected, group + layer.top(1), arrays.labels));
  }
  SPEEDO_TRY(net.give_arrays(layer.name(), arrays.data, arrays.labels));
  return arrays;
}

}  // namespace

Result<Comparison> run_dataset_case(const fs::path& path, const World& world) {
  SPEEDO_ASSIGN(const caffe::NetParameter message, read_net_prototxt(path.string() + ".prototxt"));
  SPEEDO_TRY(check_layer_types(message));
  SPEEDO_ASSIGN(const Hdf5Reader expected, Hdf5Reader::open(path.string() + ".h5"));
  SPEEDO_ASSIGN(const Phase phase, phase_of(expected));
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, make_net(message, phase, world));
  SPEEDO_ASSIGN(const std::vector<std::string> batches, expected.children("batch"));
  const auto count = static_cast<std::int64_t>(batches.size());
  Comparison comparison;
  const bool random = has_attribute(expected, "rng_dependent") &&
                      number_attribute(expected, "rng_dependent").value() != 0.0;
  if (random) {
    SPEEDO_TRY(check_crops(message, *net, count, world, comparison));
    return comparison;
  }
  std::vector<GivenArrays> given;
  for (const caffe::LayerParameter& layer : message.layer()) {
    if (layer.type() != "MemoryData") continue;
    SPEEDO_ASSIGN(GivenArrays arrays, give_arrays(layer, count, expected, *net));
    given.push_back(std::move(arrays));
  }
  for (std::int64_t b = 0; b < count; ++b) {
    SPEEDO_TRY(net->forward());
    SPEEDO_TRY(compare_batch(*net, expected, fmt::format("batch/{}", b), comparison));
  }
  return comparison;
}

// The file that a layer wrote in one pass.
Result<Comparison> run_output_case(const fs::path& path, const World& world) {
  SPEEDO_ASSIGN(caffe::NetParameter message, read_net_prototxt(path.string() + ".prototxt"));
  SPEEDO_TRY(check_layer_types(message));
  const TempDir folder;
  const fs::path file = folder / "written.h5";
  for (caffe::LayerParameter& layer : *message.mutable_layer()) {
    if (layer.has_hdf5_output_param()) {
      layer.mutable_hdf5_output_param()->set_file_name(file.string());
    }
  }
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, make_net(message, Phase::kTest, world));
  SPEEDO_TRY(net->forward());
  SPEEDO_TRY(net->finish());
  SPEEDO_ASSIGN(const Hdf5Reader written, Hdf5Reader::open(file));
  SPEEDO_ASSIGN(const Hdf5Reader expected, Hdf5Reader::open(path.string() + "_file.h5"));
  Comparison comparison;
  for (const char* dataset : {"data", "label"}) {
    SPEEDO_ASSIGN(const std::vector<std::int64_t> dims, written.dims(dataset));
    SPEEDO_ASSIGN(const std::vector<std::int64_t> reference_dims, expected.dims(dataset));
    comparison.require(dims == reference_dims, fmt::format("{} has another shape", dataset));
    SPEEDO_ASSIGN(const std::vector<float> values, written.read_floats(dataset));
    SPEEDO_ASSIGN(const std::vector<float> reference, expected.read_floats(dataset));
    comparison.values(dataset, values, reference, kExact);
  }
  return comparison;
}

}  // namespace speedo::golden
