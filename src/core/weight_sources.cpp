#include "core/weight_sources.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <speedo/base/remote_files.hpp>

#include "base/log.hpp"

namespace speedo {

namespace {

// So many names of layers, or parameters, stand in a message.
constexpr std::size_t kNamesShown = 8;

std::string list(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kNamesShown);
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(shown));
  std::string text = fmt::format("{}", fmt::join(first, ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// The layers that own parameters, which another layer may share.
std::vector<std::string> owners(const Net& net) {
  std::vector<std::string> names;
  for (const ParameterSlot& slot : net.layout().slots()) {
    if (names.empty() || names.back() != slot.layer) names.push_back(slot.layer);
  }
  return names;
}

bool holds_only_finite(const caffe::BlobProto& blob) {
  const auto is_finite = [](auto value) { return std::isfinite(static_cast<float>(value)); };
  return std::all_of(blob.data().begin(), blob.data().end(), is_finite) &&
         std::all_of(blob.double_data().begin(), blob.double_data().end(), is_finite);
}

}  // namespace

void warn_if_not_finite(const std::string& file, const caffe::NetParameter& weights,
                        const Net& net) {
  std::set<std::pair<std::string, int>> wanted;
  for (const ParameterSlot& slot : net.layout().slots()) wanted.emplace(slot.layer, slot.index);
  std::vector<std::string> found;
  for (const caffe::LayerParameter& layer : weights.layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      if (!wanted.contains({layer.name(), i}) || holds_only_finite(layer.blobs(i))) continue;
      found.push_back(fmt::format("{} (parameter {})", layer.name(), i));
    }
  }
  if (found.empty()) return;
  SPEEDO_WARN("'{}' has values that are NaN or infinite for {}: what is computed with them means "
              "nothing; take weights from before",
              shown_name(file), list(found));
}

Result<void> WeightSources::copy(const std::string& file, const caffe::NetParameter& weights,
                                 Net& net) {
  files_ += (files_.empty() ? "'" : ", '") + shown_name(file) + "'";
  for (const caffe::LayerParameter& layer : weights.layer()) {
    if (layer.blobs_size() > 0) layers_.insert(layer.name());
  }
  SPEEDO_TRY(net.copy_weights_from(weights));
  warn_if_not_finite(file, weights, net);
  return {};
}

Result<void> WeightSources::check(const Net& net, bool may_be_none) const {
  const std::vector<std::string> wanted = owners(net);
  std::vector<std::string> missing;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(missing),
               [this](const std::string& name) { return layers_.count(name) == 0; });
  if (missing.empty()) return {};
  if (missing.size() == wanted.size() && !may_be_none) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{} has weights for none of the net's layers ({}), but for {}: it is "
                             "another net's, or the layers have other names",
                             files_, list(missing),
                             layers_.empty() ? std::string("none at all")
                                             : list({layers_.begin(), layers_.end()}))};
  }
  SPEEDO_WARN("{} has no weights for {}: they stay as their fillers made them", files_,
              list(missing));
  return {};
}

}  // namespace speedo
