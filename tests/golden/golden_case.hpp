#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/batch_feed.hpp>
#include <speedo/core/batch_sink.hpp>

#include "golden/comparison.hpp"

namespace caffe {
class NetParameter;
}

namespace speedo {
class Backend;
}

namespace speedo::golden {

// What every case runs on.
struct World {
  Backend* backend;
  FeedFactory* feeds;
  SinkFactory* sinks;
};

// One case found on disk. `path` is a folder, or a file's path without its extensions.
struct Case {
  using Run = Result<Comparison> (*)(const std::filesystem::path& path, const World& world);
  std::string name;
  std::filesystem::path path;
  std::filesystem::path directory;  // where its relative paths start
  Run run;
};

// Every case under `folder`, sorted by path. Error: kNotFound.
Result<std::vector<Case>> find_cases(const std::filesystem::path& folder);

// The kinds. An Error of kUnsupported means that something the case needs is not built yet.
Result<Comparison> run_net_case(const std::filesystem::path& path, const World& world);
Result<Comparison> run_solver_case(const std::filesystem::path& path, const World& world);
Result<Comparison> run_dataset_case(const std::filesystem::path& path, const World& world);
Result<Comparison> run_output_case(const std::filesystem::path& path, const World& world);
Result<Comparison> run_upgrade_case(const std::filesystem::path& path, const World& world);
Result<Comparison> run_weights_case(const std::filesystem::path& path, const World& world);
Result<Comparison> run_log_case(const std::filesystem::path& path, const World& world);

// Error kUnsupported, "layer type X", for the first layer that cannot be built.
Result<void> check_layer_types(const caffe::NetParameter& net);

std::vector<float> download(Backend& backend, const float* source, std::int64_t count);

}  // namespace speedo::golden
