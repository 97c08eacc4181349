#include "core/net/net_filter.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace speedo {
namespace {

bool meets(const caffe::NetState& state, const caffe::NetStateRule& rule) {
  const auto in_state = [&state](const std::string& stage) {
    return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
  };
  if (rule.has_phase() && rule.phase() != state.phase()) {
    return false;
  }
  if (rule.has_min_level() && state.level() < rule.min_level()) {
    return false;
  }
  if (rule.has_max_level() && state.level() > rule.max_level()) {
    return false;
  }
  return std::all_of(rule.stage().begin(), rule.stage().end(), in_state) &&
         std::none_of(rule.not_stage().begin(), rule.not_stage().end(), in_state);
}

bool is_included(const caffe::NetState& state, const caffe::LayerParameter& layer) {
  const auto met = [&state](const caffe::NetStateRule& rule) { return meets(state, rule); };
  if (layer.include_size() > 0) {
    return std::any_of(layer.include().begin(), layer.include().end(), met);
  }
  return std::none_of(layer.exclude().begin(), layer.exclude().end(), met);
}

}  // namespace

Result<void> filter_layers(const caffe::NetState& state, caffe::NetParameter& net) {
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
      [&state](const caffe::LayerParameter& layer) { return !is_included(state, layer); });
  layers.erase(end, layers.end());
  return {};
}

}  // namespace speedo
