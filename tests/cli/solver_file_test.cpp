#include "cli/solver_file.hpp"

#include <fstream>

#include <speedo/core/solver.hpp>

#include "checkpoint/snapshot.hpp"
#include "cli/net_inputs.hpp"
#include "data/model_files.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

caffe::NetParameter net_with(const std::string& layer, float value) {
  caffe::NetParameter net;
  net.set_name("net");
  caffe::LayerParameter* added = net.add_layer();
  added->set_name(layer);
  added->set_type("InnerProduct");
  caffe::BlobProto* blob = added->add_blobs();
  blob->mutable_shape()->add_dim(1);
  blob->add_data(value);
  return net;
}

TEST_CASE("A solver that does not exist or cannot be read is a fault of the configuration") {
  const TempDir folder;
  const auto missing = load_solver((folder / "none.prototxt").string());
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kConfig);
  CHECK(missing.error().message.find("none.prototxt") != std::string::npos);

  write(folder / "bad.prototxt", "base_lr: 0.1\nmax_iter: \"many\"\n");
  const auto bad = load_solver((folder / "bad.prototxt").string());
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == ErrorCode::kConfig);
  CHECK(bad.error().message.find("bad.prototxt:2:") != std::string::npos);
}

TEST_CASE("Flags put values in the prototxt's place") {
  caffe::SolverParameter solver;
  solver.set_momentum(0.9F);
  SolverOverrides overrides;
  overrides.max_iter = 7;
  overrides.seed = 8;
  overrides.lr = 0.5;
  apply(overrides, solver);
  CHECK(solver.max_iter() == 7);
  CHECK(solver.random_seed() == 8);
  CHECK(solver.base_lr() == 0.5F);
  CHECK(solver.momentum() == 0.9F);
}

TEST_CASE("A test interval of 0 leaves the test at the end") {
  caffe::SolverParameter solver;
  solver.set_test_interval(500);
  SolverOverrides overrides;
  overrides.test_interval = 0;
  apply(overrides, solver);
  CHECK(solver.test_interval() == 0);
  CHECK(solver.test_initialization());
  solver.add_test_iter(3);
  apply(overrides, solver);
  CHECK(solver.test_interval() > 1'000'000'000);
  CHECK_FALSE(solver.test_initialization());
}

TEST_CASE("The effective batch is a multiple of the training layer's, by iter_size") {
  caffe::SolverParameter solver;
  caffe::LayerParameter* test = solver.mutable_net_param()->add_layer();
  test->mutable_data_param()->set_batch_size(7);
  test->add_include()->set_phase(caffe::TEST);
  CHECK(set_effective_batch(64, solver).error().code == ErrorCode::kUsage);

  caffe::LayerParameter* train = solver.mutable_net_param()->add_layer();
  train->mutable_data_param()->set_batch_size(32);
  train->add_include()->set_phase(caffe::TRAIN);
  REQUIRE(set_effective_batch(128, solver));
  CHECK(solver.iter_size() == 4);
  const auto odd = set_effective_batch(100, solver);
  REQUIRE_FALSE(odd);
  CHECK(odd.error().message.find("32") != std::string::npos);
}

TEST_CASE("Several weight files are read one after another, the last one wins") {
  const TempDir folder;
  const auto a = (folder / "a.caffemodel").string();
  const auto b = (folder / "b.caffemodel").string();
  REQUIRE(write_model(a, net_with("ip1", 1.0F), caffe::SolverParameter::BINARYPROTO));
  REQUIRE(write_model(b, net_with("ip1", 2.0F), caffe::SolverParameter::BINARYPROTO));
  const auto both = read_weights(a + "," + b);
  REQUIRE(both);
  REQUIRE(both->layer_size() == 2);
  CHECK(both->layer(1).blobs(0).data(0) == 2.0F);

  const auto missing = read_weights(a + ",nothing.caffemodel");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("nothing.caffemodel") != std::string::npos);
  CHECK(read_weights("a.solverstate").error().code == ErrorCode::kUsage);
  CHECK(read_saved_state(a).error().code == ErrorCode::kUsage);
}

TEST_CASE("A snapshot is written under Caffe's names and found again, also after a move") {
  const TempDir folder;
  fs::create_directory(folder / "old");
  const auto format = GENERATE(caffe::SolverParameter::BINARYPROTO, caffe::SolverParameter::HDF5);
  const std::string end = format == caffe::SolverParameter::HDF5 ? ".h5" : "";
  caffe::SolverParameter solver;
  solver.set_snapshot_prefix((folder / "old" / "net").string());
  solver.set_snapshot_format(format);
  SnapshotWriter writer(solver);
  REQUIRE(writer.check_writable());
  caffe::SolverState state;
  state.set_iter(20);
  state.set_current_step(3);
  REQUIRE(writer.write(20, net_with("ip1", 3.0F), state));
  CHECK(writer.last_model() == (folder / "old" / ("net_iter_20.caffemodel" + end)).string());

  fs::rename(folder / "old", folder / "new");
  const auto saved =
      read_saved_state((folder / "new" / ("net_iter_20.solverstate" + end)).string());
  INFO((saved ? "" : saved.error().message));
  REQUIRE(saved);
  CHECK(saved->state.iter() == 20);
  CHECK(saved->state.current_step() == 3);
  CHECK(saved->model.layer(0).blobs(0).data(0) == 3.0F);
}

TEST_CASE("A snapshot folder that does not exist is found out before training") {
  const TempDir folder;
  caffe::SolverParameter solver;
  solver.set_snapshot_prefix((folder / "none" / "net").string());
  const auto checked = SnapshotWriter(solver).check_writable();
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == ErrorCode::kCannotWrite);
  CHECK(checked.error().message.find("none") != std::string::npos);
}

TEST_CASE("Phases and lists") {
  CHECK(*parse_phase("", Phase::kTrain) == Phase::kTrain);
  CHECK(*parse_phase("TEST", Phase::kTrain) == Phase::kTest);
  CHECK(*parse_phase("train", Phase::kTest) == Phase::kTrain);
  CHECK(parse_phase("both", Phase::kTest).error().code == ErrorCode::kUsage);
  CHECK(split_at_commas("a,b,,c") == std::vector<std::string>{"a", "b", "c"});
  CHECK(split_at_commas("").empty());
}

}  // namespace
}  // namespace speedo
