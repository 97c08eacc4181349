// How nets are built, as Caffe's log tells it, read by rules that Caffe's own logs gave.

#include "main/set_up_log.hpp"

#include <filesystem>

#include <google/protobuf/text_format.h>

#include "caffe.pb.h"
#include "main/caffe_log.hpp"
#include "main/command_support.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

// The training whose log Caffe wrote, with what it needs, and that log.
void copy_caffes_training(const Context& place) {
  const fs::path from = fs::path(SPEEDO_SOURCE_DIR) / "tests/golden/data/cli";
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    fs::copy(entry.path(), place.folder());
  }
  fs::rename(place.file("finetune.log"), place.file("caffe.log"));
}

Outcome run_there(Context& place, const std::string& arguments) {
  return place.run({"/bin/sh", "-c", "cd " + place.folder().string() + " && " + arguments});
}

caffe::NetParameter net_of(const LoggedNet& logged) {
  caffe::NetParameter net;
  INFO(logged.prototxt);
  REQUIRE(google::protobuf::TextFormat::ParseFromString(logged.prototxt, &net));
  return net;
}

// The state's level and stages are written by Caffe though they say nothing.
std::string layers_of(const LoggedNet& logged) {
  caffe::NetParameter net = net_of(logged);
  net.clear_state();
  return net.DebugString();
}

void check_same(const LoggedNet& ours, const LoggedNet& caffes) {
  CHECK(ours.filtered == caffes.filtered);
  CHECK(layers_of(ours) == layers_of(caffes));
  CHECK(net_of(ours).state().phase() == net_of(caffes).state().phase());
  REQUIRE(ours.layers.size() == caffes.layers.size());
  for (std::size_t i = 0; i < ours.layers.size(); ++i) {
    INFO(caffes.layers[i].name);
    CHECK(ours.layers[i] == caffes.layers[i]);
  }
  CHECK(ours.needs == caffes.needs);
  CHECK(ours.needs_not == caffes.needs_not);
  CHECK(ours.outputs == caffes.outputs);
  CHECK(ours.is_done);
}

// In this order in every log of a training.
void check_order(const std::string& log, const std::vector<std::string>& words) {
  std::size_t at = 0;
  for (const std::string& each : words) {
    const std::size_t found = log.find(each, at);
    INFO(each);
    REQUIRE(found != std::string::npos);
    at = found + each.size();
  }
}

TEST_CASE("Training, resuming and testing log how nets are built as Caffe did") {
  Context place;
  copy_caffes_training(place);
  const std::vector<LoggedNet> caffes = SetUpLog::parse(place.read("caffe.log"));
  REQUIRE(caffes.size() == 2);
  REQUIRE(caffes[1].layers.back().memory == 1368);

  const Outcome trained = run_there(place, program("caffe") +
                                               " train -solver solver.prototxt -weights "
                                               "cli_iter_20.caffemodel -log-format glog");
  INFO(trained.errors);
  REQUIRE(trained.exit_code == 0);
  const std::vector<LoggedNet> nets = SetUpLog::parse(trained.errors);
  REQUIRE(nets.size() == 2);
  check_same(nets[0], caffes[0]);
  check_same(nets[1], caffes[1]);
  check_order(
      trained.errors,
      {"Use CPU.", "Initializing solver from parameters: ",
       "Creating training net from net file: net.prototxt", "Network initialization done.",
       "Creating test net (#0) specified by net file: net.prototxt", "Network initialization done.",
       "Solver scaffolding done.", "Finetuning from cli_iter_20.caffemodel",
       "Starting Optimization", "Solving mlp", "Learning Rate Policy: step",
       "Iteration 0, Testing net (#0)", "Snapshotting to binary proto file cli_iter_20.caffemodel",
       "Snapshotting solver state to binary proto file cli_iter_20.solverstate",
       "Iteration 40, loss = ", "Optimization Done.", "Optimization Done."});

  const Outcome resumed = run_there(place, program("caffe") +
                                               " train -solver solver.prototxt -snapshot "
                                               "cli_iter_20.solverstate -log-format glog");
  REQUIRE(resumed.exit_code == 0);
  check_same(SetUpLog::parse(resumed.errors).at(1), caffes[1]);
  check_order(resumed.errors,
              {"Solver scaffolding done.", "Resuming from cli_iter_20.solverstate",
               "SGDSolver: restoring history", "Starting Optimization", "Solving mlp"});
  const CaffeLog rows = CaffeLogParser::parse(resumed.errors);
  REQUIRE(rows.train.size() == 4);
  CHECK(rows.train.front().iteration == 20);
  CHECK(rows.test.back().outputs.at("accuracy") == 1.0);

  const Outcome tested = run_there(place, program("caffe") +
                                              " test -model net.prototxt -weights "
                                              "cli_iter_20.caffemodel -iterations 4");
  REQUIRE(tested.exit_code == 0);
  check_same(SetUpLog::parse(tested.errors).at(0), caffes[1]);
  check_order(tested.errors, {"Network initialization done.", "Running for 4 iterations.",
                              "Batch 0, accuracy = ", "Batch 0, loss = ", "Batch 3, loss = ",
                              "Loss: ", "accuracy = 1", "loss = ", "(* 1 = "});
}

// Two losses, one of them weighted, an accuracy for every class, and a layer that stands for many.
constexpr const char* kManyOutputs = R"(name: "many"
  layer { name: "data" type: "DummyData" top: "data" top: "cont" top: "label"
          dummy_data_param { shape { dim: 4 dim: 2 dim: 3 } shape { dim: 4 dim: 2 }
                             shape { dim: 4 dim: 2 }
                             data_filler { type: "gaussian" std: 1 }
                             data_filler { type: "constant" value: 1 }
                             data_filler { type: "constant" value: 1 } } }
  layer { name: "lstm" type: "LSTM" bottom: "data" bottom: "cont" top: "lstm"
          recurrent_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "a" type: "InnerProduct" bottom: "lstm" top: "a" param { name: "w" }
          inner_product_param { num_output: 3 axis: 2 weight_filler { type: "xavier" } } }
  layer { name: "b" type: "InnerProduct" bottom: "lstm" top: "b" param { name: "w" }
          inner_product_param { num_output: 3 axis: 2 weight_filler { type: "xavier" } } }
  layer { name: "accuracy" type: "Accuracy" bottom: "a" bottom: "label" top: "accuracy"
          top: "per_class" include { phase: TEST } accuracy_param { axis: 2 } }
  layer { name: "quiet" type: "EuclideanLoss" bottom: "a" bottom: "b" }
  layer { name: "loss_a" type: "SoftmaxWithLoss" bottom: "a" bottom: "label" top: "loss_a"
          softmax_param { axis: 2 } }
  layer { name: "loss_b" type: "SoftmaxWithLoss" bottom: "b" bottom: "label" top: "loss_b"
          loss_weight: 0.3 softmax_param { axis: 2 } })";

TEST_CASE("The log of a net with several outputs has them all, and an LSTM as one layer") {
  Context place;
  const std::string net = place.write("many.prototxt", kManyOutputs);
  const std::string solver = place.write(
      "solver.prototxt", "net: \"" + net + R"(" base_lr: 0.1 lr_policy: "fixed" max_iter: 20
      display: 10 test_iter: 2 test_interval: 10 random_seed: 1 snapshot_prefix: ")" +
                             place.file("snap") + "\"");
  const Outcome trained = place.run({"speedo", "train", "-solver", solver, "--log-format", "glog"});
  INFO(trained.errors);
  REQUIRE(trained.exit_code == 0);
  const std::vector<LoggedNet> nets = SetUpLog::parse(trained.errors);
  REQUIRE(nets.size() == 2);
  CHECK(nets[0].outputs == std::vector<std::string>{"loss_a", "loss_b"});
  CHECK(nets[1].outputs == std::vector<std::string>{"accuracy", "loss_a", "loss_b", "per_class"});
  const LoggedLayer& lstm = nets[0].layers.at(2);
  CHECK(lstm == LoggedLayer{"lstm", {"data", "cont"}, {"lstm"}, {"4 2 5 (40)"}, {}, 384});
  const LoggedLayer& loss = nets[0].layers.back();
  CHECK(loss.loss_weights == std::vector<double>{0.3});
  CHECK(trained.errors.find("] quiet -> (automatic)\n") != std::string::npos);
  CHECK(trained.errors.find("Sharing parameters 'w' owned by layer 'a', param index 0") !=
        std::string::npos);

  const CaffeLog rows = CaffeLogParser::parse(trained.errors);
  REQUIRE(rows.train.size() == 2);
  CHECK(rows.train[0].outputs.size() == 2);
  REQUIRE(rows.test.size() >= 3);
  CHECK(rows.test.back().outputs.count("per_class") == 1);
  CHECK(rows.test.back().outputs.count("loss_b") == 1);
}

TEST_CASE("The master of a cluster logs how its nets are built, its workers do not") {
  Context place;
  const Outcome run = place.run({"speedo", "run", "-solver", place.write_solver(), "--workers", "2",
                                 "--sync", "--log-format", "glog"});
  INFO(run.errors);
  REQUIRE(run.exit_code == 0);
  const std::vector<LoggedNet> nets = SetUpLog::parse(run.errors);
  REQUIRE(nets.size() == 2);
  CHECK(nets[1].outputs == std::vector<std::string>{"accuracy", "loss"});
}

}  // namespace
}  // namespace speedo::test
