#include "formats/weight_names.hpp"

#include <map>
#include <string_view>

#include <fmt/format.h>

namespace speedo {

namespace {

using Suffixes = std::vector<std::string_view>;

const std::map<std::string_view, Suffixes>& suffixes_by_type() {
  static const std::map<std::string_view, Suffixes> all = {
      {"BatchNorm", {"mean_sum", "variance_sum", "weight"}},
      {"Bias", {"bias"}},
      {"Convolution", {"weight", "bias"}},
      {"Deconvolution", {"weight", "bias"}},
      {"Embed", {"weight", "bias"}},
      {"InnerProduct", {"weight", "bias"}},
      {"PReLU", {"weight"}},
      {"Parameter", {"weight"}},
  };
  return all;
}

Suffixes suffixes_of(const caffe::LayerParameter& layer, int blobs) {
  const std::string& type = layer.type();
  // With two bottoms the one that a Scale learns is the bias.
  if (type == "Scale") {
    return layer.bottom_size() > 1 ? Suffixes{"bias"} : Suffixes{"weight", "bias"};
  }
  if (type == "LSTM" || type == "RNN") {
    const bool is_rnn = type == "RNN";
    Suffixes names{"weight_x", "bias", "weight_h"};
    if (blobs == (is_rnn ? 6 : 4)) names.insert(names.begin() + 2, "weight_static");
    if (is_rnn) names.insert(names.end(), {"weight_o", "bias_o"});
    return names;
  }
  const auto found = suffixes_by_type().find(type);
  return found == suffixes_by_type().end() ? Suffixes() : found->second;
}

}  // namespace

std::string weight_name(const caffe::LayerParameter& layer, int blob, int blobs) {
  const Suffixes suffixes = suffixes_of(layer, blobs);
  const auto index = static_cast<std::size_t>(blob);
  if (index >= suffixes.size()) return numbered_weight_name(layer.name(), blob);
  return fmt::format("{}.{}", layer.name(), suffixes[index]);
}

std::string numbered_weight_name(const std::string& layer, int blob) {
  return fmt::format("{}.{}", layer, blob);
}

}  // namespace speedo
