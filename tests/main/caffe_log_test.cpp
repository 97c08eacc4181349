// Logs as Caffe's own tools read them.

#include "main/caffe_log.hpp"

#include <fstream>
#include <sstream>

#include "main/command_support.hpp"
#include "support/shared_fixtures.hpp"
#include "support/skip.hpp"

namespace speedo::test {
namespace {

std::vector<double> iterations_of(const std::vector<LogRow>& rows) {
  std::vector<double> iterations;
  for (const LogRow& row : rows) iterations.push_back(row.iteration);
  return iterations;
}

// Of the trainings below: displays every 10, tests every 20 iterations.
void check_tables(const CaffeLog& log) {
  CHECK(log.seconds.size() >= 10);
  for (const double seconds : log.seconds) CHECK(seconds >= 0.0);
  REQUIRE(log.train.size() >= 3);
  for (const LogRow& row : log.train) {
    CHECK(static_cast<int>(row.iteration) % 10 == 0);
    CHECK(row.outputs.count("loss") == 1);
  }
  CHECK(log.train.back().learning_rate == Approx(0.05));
  REQUIRE(log.test.size() >= 2);
  CHECK(log.test.back().outputs.at("accuracy") == 1.0);
  CHECK(log.test.back().outputs.count("loss") == 1);
  CHECK(log.test.back().iteration == 40);
}

TEST_CASE("Caffe's tools find all tables in the log of a training and of a cluster") {
  Context place;
  const std::string solver = place.write_solver();
  const Outcome train = place.run({"speedo", "train", "-solver", solver, "--log-format", "glog"});
  REQUIRE(train.exit_code == 0);
  check_tables(CaffeLogParser::parse(train.errors));
  const Outcome run = place.run(
      {"speedo", "run", "-solver", solver, "--workers", "2", "--sync", "--log-format=glog"});
  INFO(run.errors);
  REQUIRE(run.exit_code == 0);
  check_tables(CaffeLogParser::parse(run.errors));
}

TEST_CASE("The date with the year is more than Caffe's tools read") {
  Context place;
  const Outcome train = place.run({"speedo", "train", "-solver", place.write_solver()});
  CHECK_THROWS(CaffeLogParser::parse(train.errors));
  const Outcome refused =
      place.run({"speedo", "train", "-solver", place.write_solver(), "--log-format", "json"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.error_line().find("glog-0.6, glog") != std::string::npos);
}

TEST_CASE("The log of a training that diverges can be read, too") {
  Context place;
  const Outcome train = place.run({"speedo", "train", "-solver",
                                   place.write_solver("max_iter: 8 test_initialization: false"),
                                   "--lr", "1e30", "--log-format", "glog"});
  CHECK(train.exit_code == 64);
  CHECK(train.errors.find("-nan") == std::string::npos);
  CHECK_NOTHROW(CaffeLogParser::parse(train.errors));
}

TEST_CASE("The loss of a test net without one is 0, and one that is read again counts") {
  const bool has_loss = GENERATE(false, true);
  Context place;
  std::string layers = R"(
      layer { name: "data" type: "DummyData" top: "data" dummy_data_param {
              shape { dim: 2 dim: 3 } data_filler { type: "constant" value: 0.5 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
              inner_product_param { num_output: 2 } }
      layer { name: "sum" type: "Reduction" bottom: "ip" top: "sum" loss_weight: 1
              include { phase: TRAIN } })";
  if (has_loss) {
    layers += R"(
      layer { name: "held" type: "Reduction" bottom: "data" top: "held" loss_weight: 1
              include { phase: TEST } }
      layer { name: "quiet" type: "Silence" bottom: "held" include { phase: TEST } })";
  }
  const std::string solver = place.write(
      "solver.prototxt", "net: \"" + place.write("net.prototxt", layers) +
                             "\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 2 test_iter: 1 "
                             "test_interval: 2 test_compute_loss: true "
                             "snapshot_after_train: false");
  const Outcome trained = place.run({"speedo", "train", "-solver", solver});
  INFO(trained.errors);
  CHECK(trained.exit_code == 0);
  const std::string expected = has_loss ? "Test loss: 3\n" : "Test loss: 0\n";
  CHECK(trained.errors.find(expected) != std::string::npos);
}

// Without its years, Caffe's own log is one of its time.
TEST_CASE("The rules find in a log of Caffe what is there", "[shared]") {
  const auto caffes = shared_fixtures("golden/cli/train.log");
  if (!caffes) SPEEDO_SKIP(no_shared_fixtures("golden/cli/train.log"));
  std::ifstream stream(*caffes);
  std::string text;
  for (std::string line; std::getline(stream, line);) {
    if (line.compare(1, 4, "2026") == 0) line.erase(1, 4);
    text += line + "\n";
  }
  const CaffeLog log = CaffeLogParser::parse(text);
  CHECK(iterations_of(log.train) == std::vector<double>{0, 5, 10, 15, 20, 25, 30, 35});
  CHECK(log.test.back().outputs.at("loss") == Approx(0.0116146));
  CHECK(log.train.back().learning_rate == Approx(0.025));
}

}  // namespace
}  // namespace speedo::test
