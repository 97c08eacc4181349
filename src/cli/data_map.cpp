#include "cli/data_map.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <speedo/base/file.hpp>
#include <speedo/base/remote_files.hpp>

#include "cli/exit_code.hpp"
#include "cli/quoted_words.hpp"
#include "core/net/net_filter.hpp"

namespace speedo {

namespace {

constexpr std::size_t kMapBytesMax = std::size_t{1} << 20U;

Error bad_map(const std::string& path, int line, const std::string& what) {
  return config_error(fmt::format("{}:{}: {}", shown_name(path), line, what));
}

caffe::NetParameter* train_net_of(caffe::SolverParameter& solver) {
  if (solver.has_train_net_param()) return solver.mutable_train_net_param();
  return solver.has_net_param() ? solver.mutable_net_param() : nullptr;
}

// Where a data layer says what it reads; null if it reads nothing.
std::string* source_in(caffe::LayerParameter& layer) {
  if (layer.has_data_param()) return layer.mutable_data_param()->mutable_source();
  if (layer.has_hdf5_data_param()) return layer.mutable_hdf5_data_param()->mutable_source();
  if (layer.has_image_data_param()) return layer.mutable_image_data_param()->mutable_source();
  if (layer.has_window_data_param()) return layer.mutable_window_data_param()->mutable_source();
  return nullptr;
}

}  // namespace

Result<DataMap> read_data_map(const std::string& path) {
  const auto file = find_file(path, {});
  auto content = file ? read_file(*file, kMapBytesMax) : Result<std::string>(file.error());
  if (!content) {
    return Error{unless_refused(content.error().code, ErrorCode::kConfig),
                 "--data-map: " + content.error().message};
  }
  DataMap map;
  std::istringstream stream(*content);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    std::vector<std::string> words;
    if (const auto fault = split_quoted_words(line, words)) return bad_map(path, number, *fault);
    if (words.empty()) continue;
    if (words.size() != 2 || words[0].empty() || words[1].empty()) {
      return bad_map(path, number, "a line has a worker's name and a source");
    }
    if (!map.emplace(words[0], words[1]).second) {
      return bad_map(path, number, "'" + words[0] + "' has a source already");
    }
  }
  if (!map.empty()) return map;
  return config_error("'" + shown_name(path) +
                      "' names no worker: write one a line, and its source");
}

Result<std::string> mapped_source(const DataMap& map, const std::string& worker) {
  auto found = map.find(worker);
  if (found == map.end()) found = map.find(kAllOthers);
  if (found != map.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, source] : map) names.push_back(name);
  return config_error(
      fmt::format("the data map has no source for '{}', only for {} (a line with "
                  "* is for all others)",
                  worker, fmt::join(names, ", ")));
}

Result<void> set_train_source(const std::string& source, caffe::SolverParameter& solver) {
  caffe::NetParameter* const net = train_net_of(solver);
  if (net == nullptr) return config_error("the job has no train net to give a source to");
  caffe::NetState state = solver.train_state();
  state.set_phase(caffe::TRAIN);
  SPEEDO_TRY(filter_layers(state, *net));
  std::vector<std::string*> sources;
  for (caffe::LayerParameter& layer : *net->mutable_layer()) {
    std::string* const place = source_in(layer);
    if (place != nullptr) sources.push_back(place);
  }
  if (sources.size() != 1) {
    return config_error(
        fmt::format("a data map gives each worker one source, but {} layers of the "
                    "train net read one",
                    sources.size()));
  }
  *sources.front() = source;
  return {};
}

}  // namespace speedo
