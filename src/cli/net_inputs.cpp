#include "cli/net_inputs.hpp"

#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <speedo/core/net_file.hpp>

#include "base/trimmed.hpp"
#include "cli/arguments.hpp"
#include "cli/solver_file.hpp"
#include "core/weight_sources.hpp"

namespace speedo {

StateFlags state_flags(const OptionValues& values) {
  StateFlags flags;
  values.get("level", flags.level);
  values.get("stage", flags.stage);
  return flags;
}

NetFlags net_flags(const OptionValues& values) {
  NetFlags flags;
  static_cast<StateFlags&>(flags) = state_flags(values);
  values.get("model", flags.model);
  values.get("weights", flags.weights);
  return flags;
}

void apply(const StateFlags& flags, caffe::SolverParameter& solver) {
  if (flags.level != 0) solver.mutable_train_state()->set_level(flags.level);
  for (const std::string& stage : split_at_commas(flags.stage)) {
    solver.mutable_train_state()->add_stage(stage);
  }
}

Result<void> load_weights(const std::string& files, Net& net) {
  SPEEDO_ASSIGN(const caffe::NetParameter weights, read_weights(files));
  WeightSources sources;
  SPEEDO_TRY(sources.copy(files, weights, net));
  return sources.check(net, false);
}

Result<std::unique_ptr<Net>> build_net(const NetFlags& flags, Phase phase, NetOptions options) {
  options.phase = phase;
  options.level = flags.level;
  options.stages = split_at_commas(flags.stage);
  SPEEDO_ASSIGN(std::unique_ptr<Net> net, read_net(flags.model, std::move(options)));
  if (!flags.weights.empty()) SPEEDO_TRY(load_weights(flags.weights, *net));
  return net;
}

Result<Phase> parse_phase(const std::string& text, Phase otherwise) {
  const std::string phase = squash(text);
  if (phase.empty()) return otherwise;
  if (phase == "train") return Phase::kTrain;
  if (phase == "test") return Phase::kTest;
  return Error{ErrorCode::kUsage, "--phase takes TRAIN or TEST, not '" + text + "'"};
}

std::int64_t images_per_pass(const Net& net) {
  for (const Net::LayerView& view : net.layers()) {
    if (!view.bottoms.empty() || view.tops.empty()) continue;
    const Shape& shape = view.tops.front()->shape();
    return shape.axes() > 0 ? shape[0] : 1;
  }
  return 0;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const std::string_view word = trimmed(part, " \t\n");
    if (!word.empty()) parts.emplace_back(word);
  }
  return parts;
}

std::vector<std::string> split_at_blanks(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace speedo
