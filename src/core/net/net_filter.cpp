#include "core/net/net_filter.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace speedo {
namespace {

// What keeps a state from meeting a rule, in the words of Caffe's log; empty if it meets it.
std::string unmet_part(const caffe::NetState& state, const caffe::NetStateRule& rule) {
  const auto in_state = [&state](const std::string& stage) {
    return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
  };
  if (rule.has_phase() && rule.phase() != state.phase()) {
    return fmt::format("phase ({}) differed from the phase ({})", static_cast<int>(state.phase()),
                       static_cast<int>(rule.phase()));
  }
  if (rule.has_min_level() && state.level() < rule.min_level()) {
    return fmt::format("level ({}) is above the min_level ({})", state.level(), rule.min_level());
  }
  if (rule.has_max_level() && state.level() > rule.max_level()) {
    return fmt::format("level ({}) is above the max_level ({})", state.level(), rule.max_level());
  }
  for (const std::string& stage : rule.stage()) {
    if (!in_state(stage)) return fmt::format("did not contain stage '{}'", stage);
  }
  for (const std::string& stage : rule.not_stage()) {
    if (in_state(stage)) return fmt::format("contained a not_stage '{}'", stage);
  }
  return "";
}

bool meets(const caffe::NetState& state, const caffe::NetStateRule& rule, const RuleUnmet& unmet,
           const std::string& layer) {
  const std::string part = unmet_part(state, rule);
  if (part.empty()) return true;
  if (unmet) {
    unmet(fmt::format("The NetState {} specified by a rule in layer {}", part, layer));
  }
  return false;
}

bool is_included(const caffe::NetState& state, const caffe::LayerParameter& layer,
                 const RuleUnmet& unmet) {
  const auto met = [&](const caffe::NetStateRule& rule) {
    return meets(state, rule, unmet, layer.name());
  };
  if (layer.include_size() > 0) {
    return std::any_of(layer.include().begin(), layer.include().end(), met);
  }
  return std::none_of(layer.exclude().begin(), layer.exclude().end(), met);
}

}  // namespace

Result<void> filter_layers(const caffe::NetState& state, caffe::NetParameter& net,
                           const RuleUnmet& unmet) {
  auto& layers = *net.mutable_layer();
  for (const caffe::LayerParameter& layer : layers) {
    if (layer.include_size() > 0 && layer.exclude_size() > 0) {
      return Error{ErrorCode::kConfig,
                   fmt::format("layer '{}' ({}): has both include and exclude rules; use one kind",
                               layer.name(), layer.type())};
    }
  }
  const auto end = std::remove_if(
      layers.begin(), layers.end(),
      [&](const caffe::LayerParameter& layer) { return !is_included(state, layer, unmet); });
  layers.erase(end, layers.end());
  return {};
}

}  // namespace speedo
