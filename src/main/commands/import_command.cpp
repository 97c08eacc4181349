#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <speedo/backend/backend.hpp>

#include "base/log.hpp"
#include "base/read_found.hpp"
#include "cli/kept_inputs.hpp"
#include "cli/net_inputs.hpp"
#include "cli/report/console.hpp"
#include "data/model_files.hpp"
#include "formats/import_weights.hpp"
#include "formats/read_deploy_net.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"

namespace speedo {

namespace {

struct ImportFlags {
  std::string weights, output;
  DeployRequest request;
  bool partial = false;
};

ImportFlags import_flags(const OptionValues& values) {
  ImportFlags flags;
  std::string model;
  values.get("model", model);
  values.get("weights", flags.weights);
  values.get("output", flags.output);
  values.get("shape", flags.request.shapes);
  values.get("partial", flags.partial);
  flags.request.model = model;
  const StateFlags state = state_flags(values);
  flags.request.options.state.set_level(state.level);
  for (const std::string& stage : split_at_commas(state.stage)) {
    flags.request.options.state.add_stage(stage);
  }
  return flags;
}

// The first of them: a file may lack thousands.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  if (names.size() <= kShown) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kShown, ", "),
                     names.size() - kShown);
}

// Gaps are told of where they are allowed, and else are what is wrong.
Result<void> judge(const ImportGaps& gaps, const ImportFlags& flags) {
  std::string what;
  if (!gaps.missing.empty()) {
    what += "it lacks " + listed(gaps.missing);
  }
  if (!gaps.surplus.empty()) {
    what += (what.empty() ? "the net has no " : "; the net has no ") + listed(gaps.surplus);
  }
  if (!gaps.partial.empty()) {
    what += "; without the rest of their layers it cannot take " + listed(gaps.partial);
  }
  if (what.empty()) return {};
  if (flags.partial) {
    SPEEDO_WARN("{}: {}", flags.weights, what);
    return {};
  }
  return Error{ErrorCode::kMismatch,
               fmt::format("{}: {}; --partial takes what is there", flags.weights, what)};
}

// Nothing of a phase whose data are not there.
LayerShapes shapes_in_phases(const caffe::NetParameter& whole, const ImportFlags& flags,
                             const NetOptions& options) {
  LayerShapes shapes;
  for (const Phase phase : {Phase::kTrain, Phase::kTest}) {
    const auto planned = plan_whole_net(whole, phase, flags.request, options);
    if (planned) shapes.merge(parameter_shapes(**planned));
  }
  return shapes;
}

Result<void> check_shared_in_phases(const caffe::NetParameter& whole,
                                    const caffe::NetParameter& model, const ImportFlags& flags,
                                    const ImportGaps& gaps) {
  for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
    caffe::NetState state = flags.request.options.state;
    state.set_phase(phase);
    const auto checked = check_shared(whole, state, model, gaps.missing);
    if (!checked) {
      return Error{checked.error().code, flags.weights + ": " + checked.error().message};
    }
  }
  return {};
}

// The net with what the file has, also for layers that the deployed net has not.
Result<caffe::NetParameter> model_with_weights(const SafetensorsFile& file,
                                               const ImportFlags& flags,
                                               const caffe::NetParameter& deployed,
                                               const NetOptions& options) {
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, build_deploy_net(deployed, options));
  SPEEDO_ASSIGN(ImportGaps gaps, import_weights(file, *net));
  const bool has_none = gaps.missing.size() == net->layout().slots().size();
  SPEEDO_ASSIGN(const caffe::NetParameter whole, read_whole_net(flags.request));
  LayerShapes shapes;
  if (!gaps.surplus.empty()) shapes = shapes_in_phases(whole, flags, options);
  SPEEDO_ASSIGN(std::vector<caffe::LayerParameter> others,
                import_others(file, layers_left_out(whole, deployed), shapes, gaps));
  SPEEDO_TRY(judge(gaps, flags));
  if (has_none) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{}: none of its tensors is a parameter of the net", flags.weights)};
  }
  caffe::NetParameter weights;
  net->to_proto(weights, false);
  caffe::NetParameter model = with_weights(deployed, weights);
  for (caffe::LayerParameter& layer : others) *model.add_layer() = std::move(layer);
  SPEEDO_TRY(check_shared_in_phases(whole, model, flags, gaps));
  return model;
}

}  // namespace

Result<int> import_command(const CommandLine& line) {
  OptionValues values(Program::kImport);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  const ImportFlags flags = import_flags(values);
  SPEEDO_TRY(check_target(flags.output, {flags.request.model, flags.weights},
                          "--output " + flags.output));

  set_up_console(false);
  SPEEDO_ASSIGN(const SafetensorsFile file, read_found(flags.weights, {}, SafetensorsFile::open));
  const TrainerParts parts = trainer_parts();
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  NetOptions options;
  options.backend = backend.get();
  options.feeds = feeds.get();
  options.base = flags.request.model.parent_path();
  SPEEDO_ASSIGN(const caffe::NetParameter deployed, read_deploy_net(flags.request, options));
  SPEEDO_ASSIGN(const caffe::NetParameter model,
                model_with_weights(file, flags, deployed, options));
  const bool as_hdf5 = flags.output.ends_with(".h5");
  SPEEDO_TRY(
      write_model(flags.output, model,
                  as_hdf5 ? caffe::SolverParameter::HDF5 : caffe::SolverParameter::BINARYPROTO));
  SPEEDO_INFO("Wrote the weights to {}", flags.output);
  return 0;
}

}  // namespace speedo
