// What golden_runner itself says and ends with: too few cases that pass, cases that are skipped,
// weight files beside a pass that changes statistics.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/file.hpp>

#include "data/model_files.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = "tests/golden/data/layers";

struct Ending {
  int exit_code;
  std::string said;
};

Ending run_on(const fs::path& folder, const std::vector<std::string>& options = {}) {
  const TempDir scratch;
  std::vector<std::string> command{SPEEDO_GOLDEN_RUNNER, folder.string()};
  command.insert(command.end(), options.begin(), options.end());
  test::Process runner(command, scratch / "log");
  const auto exit_code = runner.wait();
  INFO(runner.errors());
  REQUIRE(exit_code.has_value());
  return {*exit_code, runner.output()};
}

void copy_case(const std::string& name, const fs::path& target) {
  fs::create_directories(target);
  fs::copy(kCases / name, target, fs::copy_options::recursive);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("fewer cases than must pass are a failure") {
  const TempDir folder;
  copy_case("ip_basic", folder / "ip_basic");
  copy_case("tanh", folder / "tanh");
  const Ending enough = run_on(folder.path(), {"--must-pass", "2"});
  CHECK(enough.exit_code == 0);
  CHECK(has(enough.said, "2 passed, 0 failed, 0 skipped"));
  const Ending few = run_on(folder.path(), {"--must-pass", "3"});
  CHECK(few.exit_code == 1);
  CHECK(has(few.said, "3 must pass, not 2"));
}

TEST_CASE("a case that is skipped has not passed") {
  const TempDir folder;
  copy_case("tanh", folder / "tanh");
  const fs::path net = folder / "tanh" / "net.prototxt";
  std::string text = read_file(net).value();
  text.replace(text.find("\"TanH\""), 6, "\"Python\"");
  REQUIRE(write_file_atomically(net, std::as_bytes(std::span(text))).has_value());
  const Ending ending = run_on(folder.path());
  CHECK(ending.exit_code == 1);
  CHECK(has(ending.said, "0 passed, 0 failed, 1 skipped"));
}

TEST_CASE("a folder without cases is a failure") {
  const TempDir folder;
  CHECK(run_on(folder.path()).exit_code == 1);
}

TEST_CASE("weights as HDF5 are compared with a net that no pass has changed") {
  const TempDir folder;
  copy_case("batchnorm_train", folder / "bn");
  caffe::NetParameter weights = read_model(folder / "bn" / "weights.caffemodel").value();
  const auto write = [&] {
    return write_model(folder / "bn" / "weights.h5", weights, caffe::SolverParameter::HDF5);
  };
  REQUIRE(write().has_value());
  const Ending same = run_on(folder.path());
  INFO(same.said);
  CHECK(same.exit_code == 0);
  for (caffe::LayerParameter& layer : *weights.mutable_layer()) {
    if (layer.blobs_size() > 0) layer.mutable_blobs(0)->set_data(0, 0.125F);
  }
  REQUIRE(write().has_value());
  const Ending other = run_on(folder.path());
  INFO(other.said);
  CHECK(other.exit_code == 1);
  CHECK(has(other.said, "0 passed, 1 failed"));
}

}  // namespace
}  // namespace speedo
