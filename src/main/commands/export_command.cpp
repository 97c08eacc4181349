#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "cli/kept_inputs.hpp"
#include "cli/net_inputs.hpp"
#include "cli/report/console.hpp"
#include "cli/solver_file.hpp"
#include "core/prototxt.hpp"
#include "core/weight_file.hpp"
#include "data/model_files.hpp"
#include "formats/onnx/onnx_file.hpp"
#include "formats/read_deploy_net.hpp"
#include "formats/safetensors_file.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

struct ExportFlags {
  std::string format, weights, output;
  DeployRequest request;
};

// A net with its weights, ready to be asked, and the layers that weight files are written of.
struct Exported {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<FeedFactory> feeds;
  caffe::NetParameter deployed;  // without weights
  std::unique_ptr<Net> net;
};

ExportFlags export_flags(const OptionValues& values) {
  ExportFlags flags;
  std::string model, outputs;
  values.get("format", flags.format);
  values.get("model", model);
  values.get("weights", flags.weights);
  values.get("output", flags.output);
  values.get("shape", flags.request.shapes);
  values.get("batch", flags.request.batch);
  values.get("outputs", outputs);
  flags.request.model = model;
  flags.request.options.outputs = split_at_commas(outputs);
  const StateFlags state = state_flags(values);
  flags.request.options.state.set_level(state.level);
  for (const std::string& stage : split_at_commas(state.stage)) {
    flags.request.options.state.add_stage(stage);
  }
  return flags;
}

// Of --format deploy.
fs::path weights_target(const ExportFlags& flags) {
  return fs::path(flags.output).replace_extension(".caffemodel");
}

Result<void> check(const ExportFlags& flags) {
  const bool is_of_weights = flags.format == "safetensors" || flags.format == "h5";
  if (flags.request.model.empty() && !is_of_weights) {
    return usage_error(fmt::format("--format {} needs --model, the net's prototxt", flags.format));
  }
  if (flags.weights.empty() && flags.format != "deploy") {
    return usage_error(
        fmt::format("--format {} needs --weights, the net's .caffemodel", flags.format));
  }
  if (flags.format == "deploy" && fs::path(flags.output).extension() == ".caffemodel") {
    return usage_error("--output names the prototxt; the weights are written beside it");
  }
  // A net that is exported may have fewer layers.
  const std::vector<std::string> inputs{flags.request.model, flags.weights};
  const std::string named = "--output " + flags.output;
  SPEEDO_TRY(check_target(flags.output, inputs, named));
  if (flags.format == "deploy" && !flags.weights.empty()) {
    SPEEDO_TRY(check_target(weights_target(flags), inputs, named));
  }
  return {};
}

// "250" of "lenet_iter_250.caffemodel"; nothing of other names.
std::string iteration_in(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  const std::string mark = "_iter_";
  const std::size_t place = name.rfind(mark);
  if (place == std::string::npos) return "";
  const std::size_t begin = place + mark.size();
  const std::size_t end = name.find_first_not_of("0123456789", begin);
  return name.substr(begin, end == std::string::npos ? end : end - begin);
}

std::map<std::string, std::string> metadata_of(const ExportFlags& flags, const std::string& net) {
  std::map<std::string, std::string> metadata{{"producer", version()}};
  if (!net.empty()) metadata["net"] = net;
  const std::string iteration = iteration_in(flags.weights);
  if (!iteration.empty()) metadata["iteration"] = iteration;
  return metadata;
}

Result<Exported> build(const ExportFlags& flags) {
  Exported exported;
  const TrainerParts parts = trainer_parts();
  SPEEDO_ASSIGN(exported.backend, parts.make_backend());
  exported.feeds = parts.make_feeds();
  NetOptions options;
  options.backend = exported.backend.get();
  options.feeds = exported.feeds.get();
  options.base = flags.request.model.parent_path();
  SPEEDO_ASSIGN(exported.deployed, read_deploy_net(flags.request, options));
  if (flags.weights.empty()) {
    options.phase = Phase::kTest;
    options.trains = false;
    options.plan_only = true;
    SPEEDO_ASSIGN(exported.net, Net::create(exported.deployed, options));
    return exported;
  }
  SPEEDO_ASSIGN(exported.net, build_deploy_net(exported.deployed, options));
  SPEEDO_TRY(load_weights(flags.weights, *exported.net));
  return exported;
}

// What other programs must know to use the net.
void tell_ends(const Net& net, const std::vector<std::string>& wanted) {
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->type() != "Input") continue;
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      SPEEDO_INFO("Input {}: {}", view.top_names[i], to_string(view.tops[i]->shape()));
    }
  }
  for (const std::string& name : wanted.empty() ? net.output_names() : wanted) {
    SPEEDO_INFO("Output {}: {}", name, to_string(net.blob(name)->shape()));
  }
}

caffe::NetParameter model_of(const Exported& exported) {
  caffe::NetParameter weights;
  exported.net->to_proto(weights, false);
  return with_weights(exported.deployed, weights);
}

Result<void> export_deploy(const ExportFlags& flags) {
  SPEEDO_ASSIGN(const Exported exported, build(flags));
  // What is large goes first: a disk without room for it gets no net without weights.
  if (!flags.weights.empty()) {
    const fs::path weights = weights_target(flags);
    SPEEDO_TRY(write_caffemodel(weights, model_of(exported)));
    SPEEDO_INFO("Wrote the weights to {}", weights.string());
  }
  SPEEDO_TRY(write_file_atomically(flags.output, to_prototxt(exported.deployed)));
  SPEEDO_INFO("Wrote the net to {}", flags.output);
  tell_ends(*exported.net, flags.request.options.outputs);
  return {};
}

Result<void> export_onnx(const ExportFlags& flags) {
  SPEEDO_ASSIGN(const Exported exported, build(flags));
  SPEEDO_TRY(write_onnx(flags.output, *exported.net,
                        {.metadata = metadata_of(flags, exported.net->name()),
                         .outputs = flags.request.options.outputs}));
  SPEEDO_INFO("Wrote the net to {}", flags.output);
  tell_ends(*exported.net, flags.request.options.outputs);
  return {};
}

void warn_of_unknown(const caffe::NetParameter& weights, const caffe::NetParameter& net,
                     const ExportFlags& flags) {
  std::set<std::string> known;
  for (const caffe::LayerParameter& layer : net.layer()) known.insert(layer.name());
  for (const caffe::LayerParameter& layer : weights.layer()) {
    if (layer.blobs_size() == 0 || known.contains(layer.name())) continue;
    SPEEDO_WARN("The weights of layer '{}' are left out: {} has no such layer", layer.name(),
                flags.request.model.string());
  }
}

// The weights as the net has them, in either phase, or without a net as the file has them. With
// --outputs those alone that these need.
Result<caffe::NetParameter> weights_to_export(const ExportFlags& flags) {
  if (flags.request.model.empty()) return read_weights(flags.weights);
  SPEEDO_ASSIGN(const Exported exported, build(flags));
  caffe::NetParameter model = model_of(exported);
  if (!flags.request.options.outputs.empty()) return model;
  SPEEDO_ASSIGN(const caffe::NetParameter net, read_whole_net(flags.request));
  SPEEDO_ASSIGN(const caffe::NetParameter weights, read_weights(flags.weights));
  caffe::NetParameter others;
  for (caffe::LayerParameter& layer : layers_left_out(net, exported.deployed)) {
    *others.add_layer() = std::move(layer);
  }
  others = with_weights(others, weights);
  for (caffe::LayerParameter& layer : *others.mutable_layer()) {
    if (layer.blobs_size() > 0) *model.add_layer() = std::move(layer);
  }
  warn_of_unknown(weights, net, flags);
  return model;
}

Result<void> export_weights(const ExportFlags& flags) {
  SPEEDO_ASSIGN(const caffe::NetParameter model, weights_to_export(flags));
  if (flags.format == "h5") {
    SPEEDO_TRY(write_model(flags.output, model, caffe::SolverParameter::HDF5));
  } else {
    SPEEDO_TRY(write_safetensors(flags.output, model, metadata_of(flags, model.name())));
  }
  SPEEDO_INFO("Wrote the weights to {}", flags.output);
  return {};
}

}  // namespace

Result<int> export_command(const CommandLine& line) {
  OptionValues values(Program::kExport);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  const ExportFlags flags = export_flags(values);
  SPEEDO_TRY(check(flags));
  if (flags.request.model.empty()) {
    SPEEDO_TRY(values.refuse_given({"shape", "batch", "outputs", "level", "stage"},
                                   "without --model"));
  }
  set_up_console(false);
  if (flags.format == "deploy") {
    SPEEDO_TRY(export_deploy(flags));
  } else if (flags.format == "onnx") {
    SPEEDO_TRY(export_onnx(flags));
  } else {
    SPEEDO_TRY(export_weights(flags));
  }
  return 0;
}

}  // namespace speedo
