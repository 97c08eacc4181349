// Layer and net cases: build the net in the recorded phase, load its weights, run it forward and
// backward on the recorded inputs and compare every blob and every gradient.

#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>
#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "core/layers/registry.hpp"
#include "core/prototxt.hpp"
#include "data/hdf5_file.hpp"
#include "data/model_files.hpp"
#include "golden/exact_blobs.hpp"
#include "golden/golden_case.hpp"
#include "golden/random_layers.hpp"

namespace speedo::golden {
namespace {

namespace fs = std::filesystem;

// What the parts of one case share.
struct NetCase {
  Hdf5Reader io;
  caffe::NetParameter message;
  std::unique_ptr<Net> net;
  bool random = false;  // some values depend on Caffe's random generator
  Comparison comparison;
};

Result<nlohmann::json> json_attribute(const Hdf5Reader& io, const std::string& name) {
  SPEEDO_ASSIGN(const std::string text, io.string_attribute("/", name));
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) return Error{ErrorCode::kData, "attribute " + name + " is not JSON"};
  return value;
}

Result<void> open(NetCase& one, const fs::path& folder, const World& world) {
  SPEEDO_ASSIGN(one.message, read_net_prototxt(folder / "net.prototxt"));
  SPEEDO_TRY(check_layer_types(one.message));
  SPEEDO_ASSIGN(const std::string phase, one.io.string_attribute("/", "phase"));
  NetOptions options;
  options.phase = phase == "TRAIN" ? Phase::kTrain : Phase::kTest;
  options.backend = world.backend;
  options.feeds = world.feeds;
  options.base = folder;
  options.seed = 1701;
  options.keep_blobs = true;
  SPEEDO_ASSIGN(one.net, Net::create(one.message, options));
  SPEEDO_ASSIGN(const double random, one.io.number_attribute("/", "rng_dependent"));
  one.random = random != 0.0;
  if (fs::exists(folder / "weights.caffemodel")) {
    SPEEDO_ASSIGN(const caffe::NetParameter weights, read_model(folder / "weights.caffemodel"));
    SPEEDO_TRY(one.net->copy_weights_from(weights));
  }
  return {};
}

// The net after Split insertion must be Caffe's, layer by layer and blob by blob.
Result<void> check_structure(NetCase& one) {
  nlohmann::json layers = nlohmann::json::array();
  nlohmann::json types = nlohmann::json::array();
  nlohmann::json bottoms = nlohmann::json::object();
  nlohmann::json tops = nlohmann::json::object();
  for (const Net::LayerView& view : one.net->layers()) {
    if (view.is_reorder) continue;
    layers.push_back(view.layer->name());
    types.push_back(view.layer->type());
    bottoms[view.layer->name()] = view.bottom_names;
    tops[view.layer->name()] = view.top_names;
  }
  nlohmann::json weights = nlohmann::json::array();
  for (const std::string& blob : one.net->blob_names()) {
    weights.push_back(one.net->loss_weight(blob));
  }
  const std::pair<const char*, nlohmann::json> parts[] = {
      {"layer_names", layers},
      {"layer_types", types},
      {"blob_names", one.net->blob_names()},
      {"blob_loss_weights", weights},
      {"bottoms", bottoms},
      {"tops", tops},
      {"outputs", one.net->output_names()}};
  for (const auto& [name, ours] : parts) {
    SPEEDO_ASSIGN(const nlohmann::json reference, json_attribute(one.io, name));
    one.comparison.require(ours == reference, fmt::format("{} are {}, not {}", name, ours.dump(),
                                                          reference.dump()));
  }
  return {};
}

Result<void> compare(NetCase& one, const std::string& dataset, const Shape& shape,
                     const std::vector<float>& values, double tolerance = kTolerance) {
  SPEEDO_ASSIGN(const std::vector<std::int64_t> dims, one.io.dims(dataset));
  one.comparison.require(dims == shape.dims(),
                         fmt::format("{} has the shape {}", dataset, to_string(shape)));
  SPEEDO_ASSIGN(const std::vector<float> reference, one.io.read_floats(dataset));
  one.comparison.values(dataset, values, reference, tolerance);
  return {};
}

// `suffix`: data, data_after_forward or diff. Parameters that the file does not hold are passed
// over.
Result<void> compare_parameters(NetCase& one, const std::string& suffix) {
  for (const Net::LayerView& view : one.net->layers()) {
    const auto& parameters = view.layer->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto dataset = fmt::format("param/{}/{}/{}", view.layer->name(), i, suffix);
      if (!one.io.has(dataset)) continue;
      const Tensor& parameter = *parameters[i];
      Backend& backend = one.net->backend();
      const std::vector<float> values =
          suffix == "diff" ? parameter.gradients(backend) : parameter.values(backend);
      SPEEDO_TRY(compare(one, dataset, parameter.shape(), values,
                         suffix == "data" ? kExact : kTolerance));
    }
  }
  return {};
}

Result<Tensor*> find_blob(const NetCase& one, const std::string& name) {
  if (Tensor* blob = one.net->blob(name)) return blob;
  return Error{ErrorCode::kMismatch, "the net has no blob '" + name + "'"};
}

Result<void> upload(NetCase& one, const std::string& group, bool to_grad) {
  if (!one.io.has(group)) return {};
  SPEEDO_ASSIGN(const std::vector<std::string> names, one.io.children(group));
  for (const std::string& name : names) {
    SPEEDO_ASSIGN(Tensor* const blob, find_blob(one, name));
    SPEEDO_ASSIGN(const std::vector<float> values, one.io.read_floats(group + "/" + name));
    if (static_cast<std::int64_t>(values.size()) != blob->count()) {
      return Error{ErrorCode::kMismatch, fmt::format("blob '{}' has {} elements, not {}", name,
                                                     blob->count(), values.size())};
    }
    if (to_grad && !blob->has_grad()) continue;  // no layer reads this gradient
    if (to_grad) {
      blob->set_gradients(one.net->backend(), values);
    } else {
      blob->set_values(one.net->backend(), values);
    }
  }
  return {};
}

Result<void> check_forward(NetCase& one) {
  SPEEDO_TRY(upload(one, "in", false));
  SPEEDO_ASSIGN(const float loss, one.net->forward());
  const BlobKinds kinds = blob_kinds(*one.net, one.message);
  SPEEDO_ASSIGN(const std::vector<std::string> names, one.io.children("fwd"));
  for (const std::string& name : names) {
    SPEEDO_ASSIGN(const Tensor* const blob, find_blob(one, name));
    if (one.random && kinds.random.contains(name)) continue;
    SPEEDO_TRY(compare(one, "fwd/" + name, blob->shape(), blob->values(one.net->backend()),
                       kinds.exact.contains(name) ? kExact : kTolerance));
  }
  if (!one.random) {
    SPEEDO_ASSIGN(const double reference, one.io.number_attribute("/", "loss"));
    const auto expected = static_cast<float>(reference);
    one.comparison.values("loss", {&loss, 1}, {&expected, 1});
  }
  return compare_parameters(one, "data_after_forward");
}

// Blobs whose gradient some layer's backward pass writes.
std::set<std::string> reached_by_backward(const Net& net) {
  std::set<std::string> reached;
  for (const Net::LayerView& view : net.layers()) {
    for (std::size_t i = 0; view.needs_backward && i < view.bottom_names.size(); ++i) {
      if (view.propagate[i]) reached.insert(view.bottom_names[i]);
    }
  }
  return reached;
}

bool all_zero(const std::vector<float>& values) {
  for (const float value : values) {
    if (value != 0.0F) return false;
  }
  return true;
}

Result<void> compare_gradients(NetCase& one) {
  const std::set<std::string> reached = reached_by_backward(*one.net);
  SPEEDO_ASSIGN(const std::vector<std::string> names, one.io.children("bwd"));
  for (const std::string& name : names) {
    const std::string dataset = "bwd/" + name;
    SPEEDO_ASSIGN(const Tensor* const blob, find_blob(one, name));
    if (reached.contains(name)) {
      SPEEDO_TRY(compare(one, dataset, blob->shape(), blob->gradients(one.net->backend())));
      continue;
    }
    // Caffe left zeros, what was put in, or a loss weight where no backward pass writes.
    const bool given = one.io.has("top_diff/" + name) || one.net->loss_weight(name) != 0.0F;
    SPEEDO_ASSIGN(const std::vector<float> reference, one.io.read_floats(dataset));
    one.comparison.require(given || all_zero(reference), dataset + " is never computed");
  }
  return {};
}

Result<void> check_backward(NetCase& one) {
  SPEEDO_ASSIGN(const double backward, one.io.number_attribute("/", "backward"));
  if (backward == 0.0) return {};
  one.net->clear_gradients();
  SPEEDO_TRY(upload(one, "top_diff", true));
  one.net->backward();
  if (one.random) return {};
  SPEEDO_TRY(compare_gradients(one));
  return compare_parameters(one, "diff");
}

// The same weights as HDF5 must give the same parameters; both directions of the binary form too.
Result<void> check_weight_files(NetCase& one, const fs::path& folder) {
  if (!fs::exists(folder / "weights.h5")) return {};
  Arena& weights = one.net->weights();
  Backend& backend = one.net->backend();
  const std::vector<float> expected = download(backend, weights.data(), weights.size());
  backend.fill(weights.size(), 0.0F, weights.data());
  SPEEDO_ASSIGN(const caffe::NetParameter from_hdf5, read_model(folder / "weights.h5"));
  SPEEDO_TRY(one.net->copy_weights_from(from_hdf5));
  one.comparison.values("weights.h5", download(backend, weights.data(), weights.size()), expected,
                        kExact);
  return {};
}

}  // namespace

Result<void> check_layer_types(const caffe::NetParameter& net) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    const Result<std::unique_ptr<Layer>> made = make_layer(layer);
    if (made || made.error().code != ErrorCode::kUnsupported) continue;
    return Error{ErrorCode::kUnsupported, "layer type " + layer.type()};
  }
  return {};
}

std::vector<float> download(Backend& backend, const float* source, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  backend.download(values, source);
  return values;
}

Result<Comparison> run_net_case(const fs::path& path, const World& world) {
  SPEEDO_ASSIGN(Hdf5Reader io, Hdf5Reader::open(path / "io.h5"));
  NetCase one{std::move(io), {}, nullptr, false, {}};
  SPEEDO_TRY(open(one, path, world));
  SPEEDO_TRY(check_structure(one));
  SPEEDO_TRY(compare_parameters(one, "data"));
  SPEEDO_TRY(check_forward(one));
  SPEEDO_TRY(check_backward(one));
  if (one.random) SPEEDO_TRY(check_random_layers(*one.net, one.message, one.io, one.comparison));
  SPEEDO_TRY(check_weight_files(one, path));
  return std::move(one.comparison);
}

}  // namespace speedo::golden
