// Layer and net cases: build the net in the recorded phase, load its weights, run it forward and
// backward on the recorded inputs and compare every blob and every gradient. Then the same net with
// nothing to look at but outputs, inputs' gradients and parameters; then as training builds it,
// where a loss gives the recorded gradients and no blob is kept for anybody.

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "core/layers/registry.hpp"
#include "core/prototxt.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/hdf5_attributes.hpp"
#include "data/model_files.hpp"
#include "golden/exact_blobs.hpp"
#include "golden/golden_case.hpp"
#include "golden/random_layers.hpp"
#include "support/random_seed.hpp"
#include "support/reached_by_backward.hpp"

namespace speedo::golden {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSeed = 1701;

enum class Run { kAllShown, kOutputsShown, kTrained };

std::string_view prefix_of(Run run) {
  switch (run) {
    case Run::kAllShown:
      return "";
    case Run::kOutputsShown:
      return "without keep_blobs, ";
    case Run::kTrained:
      return "as trained, ";
  }
  return "";
}

// What the parts of one case share.
struct NetCase {
  fs::path folder;
  Hdf5Reader io;
  caffe::NetParameter message;
  bool random = false;  // some values depend on Caffe's random generator
  Comparison comparison;
  // The net that is run.
  Run run = Run::kAllShown;
  NetOptions options;
  std::unique_ptr<Net> net;
  std::set<std::string> inputs;   // tops of its Input layers
  std::set<std::string> visible;  // blobs whose values outlive the passes

  // As a dataset of this net is named in a verdict.
  std::string label(const std::string& dataset) const {
    return std::string(prefix_of(run)) + dataset;
  }
};

Result<nlohmann::json> json_attribute(const Hdf5Reader& io, const std::string& name) {
  SPEEDO_ASSIGN(const std::string text, string_attribute(io, name));
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) return Error{ErrorCode::kData, "attribute " + name + " is not JSON"};
  return value;
}

Result<NetCase> open(const fs::path& folder, const World& world) {
  SPEEDO_ASSIGN(Hdf5Reader io, Hdf5Reader::open(folder / "io.h5"));
  NetCase one{folder, std::move(io), {}, false, {}, Run::kAllShown, {}, nullptr, {}, {}};
  SPEEDO_ASSIGN(one.message, read_net_prototxt(folder / "net.prototxt"));
  SPEEDO_TRY(check_layer_types(one.message));
  SPEEDO_ASSIGN(const double random, number_attribute(one.io, "rng_dependent"));
  one.random = random != 0.0;
  SPEEDO_ASSIGN(const std::string phase, string_attribute(one.io, "phase"));
  one.options.phase = phase == "TRAIN" ? Phase::kTrain : Phase::kTest;
  one.options.backend = world.backend;
  one.options.feeds = world.feeds;
  one.options.base = folder;
  return one;
}

void find_visible_blobs(NetCase& one) {
  const auto& shown = one.options.keep_blobs ? one.net->blob_names() : one.net->output_names();
  one.visible = {shown.begin(), shown.end()};
  for (const Net::LayerView& view : one.net->layers()) {
    if (view.layer->type() != "Input") continue;
    one.inputs.insert(view.top_names.begin(), view.top_names.end());
  }
  one.visible.insert(one.inputs.begin(), one.inputs.end());
}

std::string given_gradient(const std::string& blob) { return "top_diff/" + blob; }

// A loss that gives the blob, as its gradient, the values of the input given_gradient(blob).
Result<void> add_loss(const NetCase& one, const std::string& blob, caffe::NetParameter& net) {
  SPEEDO_ASSIGN(const std::vector<std::int64_t> dims, one.io.dims(given_gradient(blob)));
  caffe::LayerParameter& input = *net.add_layer();
  input.set_name(given_gradient(blob));
  input.set_type("Input");
  input.add_top(given_gradient(blob));
  caffe::BlobShape& shape = *input.mutable_input_param()->add_shape();
  for (const std::int64_t dim : dims) shape.add_dim(dim);
  caffe::LayerParameter& loss = *net.add_layer();
  loss.set_name("loss of " + blob);
  loss.set_type("Eltwise");
  loss.mutable_eltwise_param()->set_operation(caffe::EltwiseParameter::PROD);
  loss.add_bottom(blob);
  loss.add_bottom(given_gradient(blob));
  loss.add_top(loss.name());
  loss.add_loss_weight(1.0F);
  return {};
}

Result<void> build(NetCase& one, Run run, std::uint64_t seed) {
  one.run = run;
  one.options.keep_blobs = run == Run::kAllShown;
  one.options.seed = seed;
  one.options.kept_blobs.clear();
  caffe::NetParameter message = one.message;
  if (one.io.has("top_diff")) {
    SPEEDO_ASSIGN(const std::vector<std::string> given, one.io.children("top_diff"));
    // Gradients that no loss puts there stay only where the net knows that somebody else does.
    if (run != Run::kTrained) one.options.kept_blobs = given;
    for (const std::string& blob : given) {
      if (run == Run::kTrained) SPEEDO_TRY(add_loss(one, blob, message));
    }
  }
  SPEEDO_ASSIGN(one.net, Net::create(message, one.options));
  find_visible_blobs(one);
  const fs::path file = one.folder / "weights.caffemodel";
  if (!fs::exists(file)) return {};
  SPEEDO_ASSIGN(const caffe::NetParameter weights, read_model(file));
  return one.net->copy_weights_from(weights);
}

// A layer as Caffe's net has it.
struct LayerSeen {
  std::string name, type;
  std::vector<std::string> bottoms, tops;
};

// A layer that was expanded stands for its parts: they are left out.
std::vector<LayerSeen> layers_seen(const Net& net) {
  caffe::NetParameter written;
  net.to_proto(written, false);
  std::vector<LayerSeen> seen;
  for (const Net::LayerView& view : net.layers()) {
    if (view.is_reorder) continue;
    if (view.expanded_from.empty()) {
      seen.push_back({view.layer->name(), view.layer->type(), view.bottom_names, view.top_names});
      continue;
    }
    if (!seen.empty() && seen.back().name == view.expanded_from) continue;
    for (const caffe::LayerParameter& layer : written.layer()) {
      if (layer.name() != view.expanded_from) continue;
      seen.push_back({layer.name(),
                      layer.type(),
                      {layer.bottom().begin(), layer.bottom().end()},
                      {layer.top().begin(), layer.top().end()}});
    }
  }
  return seen;
}

// The net after Split insertion must be Caffe's, layer by layer and blob by blob.
Result<void> check_structure(NetCase& one) {
  nlohmann::json layers = nlohmann::json::array();
  nlohmann::json types = nlohmann::json::array();
  nlohmann::json bottoms = nlohmann::json::object();
  nlohmann::json tops = nlohmann::json::object();
  std::set<std::string> known;
  for (const LayerSeen& layer : layers_seen(*one.net)) {
    layers.push_back(layer.name);
    types.push_back(layer.type);
    bottoms[layer.name] = layer.bottoms;
    tops[layer.name] = layer.tops;
    known.insert(layer.tops.begin(), layer.tops.end());
  }
  nlohmann::json blobs = nlohmann::json::array();
  nlohmann::json weights = nlohmann::json::array();
  for (const std::string& blob : one.net->blob_names()) {
    if (!known.contains(blob)) continue;
    blobs.push_back(blob);
    weights.push_back(one.net->loss_weight(blob));
  }
  const std::pair<const char*, nlohmann::json> parts[] = {{"layer_names", layers},
                                                          {"layer_types", types},
                                                          {"blob_names", blobs},
                                                          {"blob_loss_weights", weights},
                                                          {"bottoms", bottoms},
                                                          {"tops", tops},
                                                          {"outputs", one.net->output_names()}};
  for (const auto& [name, ours] : parts) {
    SPEEDO_ASSIGN(const nlohmann::json reference, json_attribute(one.io, name));
    one.comparison.require(ours == reference,
                           fmt::format("{} are {}, not {}", name, ours.dump(), reference.dump()));
  }
  return {};
}

Result<void> compare(NetCase& one, const std::string& dataset, const Shape& shape,
                     const std::vector<float>& values, double tolerance = kTolerance) {
  SPEEDO_ASSIGN(const std::vector<std::int64_t> dims, one.io.dims(dataset));
  one.comparison.require(dims == shape.dims(),
                         fmt::format("{} has the shape {}", one.label(dataset), to_string(shape)));
  SPEEDO_ASSIGN(const std::vector<float> reference, one.io.read_floats(dataset));
  one.comparison.values(one.label(dataset), values, reference, tolerance);
  return {};
}

// `suffix`: data, data_after_forward or diff. Parameters that the file does not hold are passed
// over.
Result<void> compare_parameters(NetCase& one, const std::string& suffix) {
  for (const Net::LayerView& view : one.net->layers()) {
    const auto& parameters = view.layer->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const ParameterSlot& slot = one.net->layout().slots()[view.slots[i]];
      const bool is_part = !view.expanded_from.empty();
      const auto dataset = fmt::format("param/{}/{}/{}", is_part ? slot.layer : view.layer->name(),
                                       is_part ? static_cast<std::size_t>(slot.index) : i, suffix);
      if (!one.io.has(dataset)) continue;
      const Tensor& parameter = *parameters[i];
      Backend& backend = one.net->backend();
      const std::vector<float> values =
          suffix == "diff" ? parameter.gradients(backend) : parameter.values(backend);
      SPEEDO_TRY(
          compare(one, dataset, parameter.shape(), values, suffix == "data" ? kExact : kTolerance));
    }
  }
  return {};
}

Result<Tensor*> find_blob(const NetCase& one, const std::string& name) {
  if (Tensor* blob = one.net->blob(name)) return blob;
  return Error{ErrorCode::kMismatch, "the net has no blob '" + name + "'"};
}

// What the losses that add_loss() adds give.
Result<void> upload_loss_gradients(NetCase& one) {
  SPEEDO_ASSIGN(const std::vector<std::string> names, one.io.children("top_diff"));
  for (const std::string& name : names) {
    SPEEDO_ASSIGN(Tensor* const blob, find_blob(one, given_gradient(name)));
    SPEEDO_ASSIGN(const std::vector<float> values, one.io.read_floats(given_gradient(name)));
    blob->set_values(one.net->backend(), values);
  }
  return {};
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
  if (one.run == Run::kTrained) SPEEDO_TRY(upload_loss_gradients(one));
  SPEEDO_ASSIGN(const float loss, one.net->forward());
  const BlobKinds kinds = blob_kinds(*one.net, one.message);
  SPEEDO_ASSIGN(const std::vector<std::string> names, one.io.children("fwd"));
  for (const std::string& name : names) {
    SPEEDO_ASSIGN(const Tensor* const blob, find_blob(one, name));
    if (!one.visible.contains(name) || (one.random && kinds.random.contains(name))) continue;
    SPEEDO_TRY(compare(one, "fwd/" + name, blob->shape(), blob->values(one.net->backend()),
                       kinds.exact.contains(name) ? kExact : kTolerance));
  }
  if (!one.random && one.run != Run::kTrained) {
    SPEEDO_ASSIGN(const double reference, number_attribute(one.io, "loss"));
    const auto expected = static_cast<float>(reference);
    one.comparison.values(one.label("loss"), {&loss, 1}, {&expected, 1});
  }
  return compare_parameters(one, "data_after_forward");
}

bool all_zero(const std::vector<float>& values) {
  for (const float value : values) {
    if (value != 0.0F) return false;
  }
  return true;
}

Result<void> compare_gradients(NetCase& one) {
  const std::set<std::string> reached = test::reached_by_backward(*one.net);
  SPEEDO_ASSIGN(const std::vector<std::string> names, one.io.children("bwd"));
  for (const std::string& name : names) {
    const std::string dataset = "bwd/" + name;
    SPEEDO_ASSIGN(const Tensor* const blob, find_blob(one, name));
    if (!one.options.keep_blobs && !one.inputs.contains(name)) continue;
    if (reached.contains(name)) {
      SPEEDO_TRY(compare(one, dataset, blob->shape(), blob->gradients(one.net->backend())));
      continue;
    }
    // Caffe left zeros, what was put in, or a loss weight where no backward pass writes.
    const bool given = one.io.has("top_diff/" + name) || one.net->loss_weight(name) != 0.0F;
    SPEEDO_ASSIGN(const std::vector<float> reference, one.io.read_floats(dataset));
    one.comparison.require(given || all_zero(reference), one.label(dataset) + " is never computed");
  }
  return {};
}

Result<void> check_backward(NetCase& one) {
  SPEEDO_ASSIGN(const double backward, number_attribute(one.io, "backward"));
  if (backward == 0.0) return {};
  one.net->clear_gradients();
  if (one.run != Run::kTrained) SPEEDO_TRY(upload(one, "top_diff", true));
  one.net->backward();
  if (one.random) return {};
  SPEEDO_TRY(compare_gradients(one));
  return compare_parameters(one, "diff");
}

// The same weights as HDF5 must give the same parameters. Before any pass: one that trains changes
// BatchNorm's statistics.
Result<void> check_weight_file(NetCase& one) {
  if (!fs::exists(one.folder / "weights.h5")) return {};
  Arena& weights = one.net->weights();
  Backend& backend = one.net->backend();
  const std::vector<float> expected = download(backend, weights.data(), weights.size());
  backend.fill(weights.size(), 0.0F, weights.data());
  SPEEDO_ASSIGN(const caffe::NetParameter from_hdf5, read_model(one.folder / "weights.h5"));
  SPEEDO_TRY(one.net->copy_weights_from(from_hdf5));
  one.comparison.values(one.label("weights.h5"), download(backend, weights.data(), weights.size()),
                        expected, kExact);
  return {};
}

Result<void> check_net(NetCase& one) {
  if (one.run != Run::kTrained) SPEEDO_TRY(check_structure(one));
  SPEEDO_TRY(compare_parameters(one, "data"));
  SPEEDO_TRY(check_weight_file(one));
  SPEEDO_TRY(check_forward(one));
  SPEEDO_TRY(check_backward(one));
  if (!one.random || one.run != Run::kAllShown) return {};
  return check_random_layers(*one.net, one.message, one.io, one.comparison);
}

}  // namespace

Result<void> check_layer_types(const caffe::NetParameter& net) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    const Result<void> made = check_layer_type(layer);
    if (made || made.error().code != ErrorCode::kUnsupported) continue;
    return Error{ErrorCode::kUnsupported, "layer type " + layer.type()};
  }
  return {};
}

std::vector<float> download(Backend& backend, const float* source, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  backend.device().download(values, source);
  return values;
}

Result<Comparison> run_net_case(const fs::path& path, const World& world) {
  SPEEDO_ASSIGN(NetCase one, open(path, world));
  SPEEDO_ASSIGN(const double backward, number_attribute(one.io, "backward"));
  std::vector<Run> runs{Run::kAllShown, Run::kOutputsShown};
  // Without gradients from outside the second run is as trained.
  if (backward != 0.0 && one.io.has("top_diff")) runs.push_back(Run::kTrained);
  for (const Run run : runs) {
    for (const std::uint64_t seed : one.random ? test::seeds({kSeed}) : std::vector{kSeed}) {
      SPEEDO_TRY(build(one, run, seed));
      SPEEDO_TRY(check_net(one));
    }
  }
  return std::move(one.comparison);
}

}  // namespace speedo::golden
