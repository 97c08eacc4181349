#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace speedo::test {

// The programs under test: those of this build, or of the folder that SPEEDO_BIN_DIR names. A path
// is what it says.
inline std::string program(const std::string& name) {
  if (name.starts_with('/')) return name;
  const char* folder = std::getenv("SPEEDO_BIN_DIR");
  return std::string(folder != nullptr ? folder : SPEEDO_BUILT_PROGRAMS) + "/" + name;
}

struct Outcome {
  int exit_code = -1;
  std::string output, errors;

  // The line that tells what went wrong: the last one on standard error.
  std::string error_line() const {
    const std::size_t end = errors.find_last_not_of('\n');
    if (end == std::string::npos) return "";
    const std::size_t begin = errors.rfind('\n', end);
    return errors.substr(begin == std::string::npos ? 0 : begin + 1,
                         end - (begin == std::string::npos ? 0 : begin + 1) + 1);
  }
  nlohmann::json json() const {
    INFO("standard output: " << output << "\nstandard error: " << errors);
    auto object = nlohmann::json::parse(output, nullptr, false);
    REQUIRE(object.is_object());
    return object;
  }
};

// A folder with prototxts in it, in which commands run with their output in files.
class Context {
 public:
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream stream(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return file(name);
  }

  // A training that needs no files: noise in, labels 0; the loss falls, the accuracy goes to 1.
  std::string write_solver(const std::string& fields = "max_iter: 40",
                           const std::string& name = "solver.prototxt") const {
    return write(name, fields + R"(
      base_lr: 0.05 lr_policy: "fixed" momentum: 0.9 random_seed: 3 display: 10
      test_iter: 2 test_interval: 20 snapshot_prefix: ")" +
                           file("snap") + "\"\n" + "net: \"" + write_net() + "\"\n");
  }
  std::string write_net(const std::string& name = "net.prototxt", int hidden = 16) const {
    return write(name, R"(name: "noise"
      layer { name: "data" type: "DummyData" top: "data" top: "label"
              dummy_data_param { shape { dim: 8 dim: 12 } shape { dim: 8 }
                                 data_filler { type: "gaussian" std: 1 }
                                 data_filler { type: "constant" value: 0 } } }
      layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
              inner_product_param { num_output: )" +
                           std::to_string(hidden) +
                           R"( weight_filler { type: "xavier" } } }
      layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
      layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
              inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
      layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy"
              include { phase: TEST } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
    )");
  }

  // `environment`: NAME=VALUE, added to our own.
  Process start(std::vector<std::string> command, std::vector<std::string> environment = {}) {
    command[0] = program(command[0]);
    return Process(std::move(command), folder_ / ("log" + std::to_string(logs_++)),
                   std::move(environment));
  }
  Outcome run(std::vector<std::string> command, std::vector<std::string> environment = {}) {
    Process process = start(std::move(command), std::move(environment));
    return finish(process);
  }
  // Waits for the end; a program that hangs fails the test.
  static Outcome finish(Process& process) {
    const auto code = process.wait();
    Outcome outcome{code.value_or(-1), process.output(), process.errors()};
    INFO("standard error: " << outcome.errors);
    REQUIRE(code);
    return outcome;
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  TempDir folder_;
  int logs_ = 0;
};

}  // namespace speedo::test
