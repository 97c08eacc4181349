#include <fstream>
#include <string>

#include <speedo/core/solver.hpp>

#include "core/solver_support.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;
using test::net_text;
using test::parse_solver;
using test::small_solver;
using test::World;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

SolverNets nets_of(World& world, const caffe::SolverParameter& solver, const fs::path& base = {}) {
  Result<SolverNets> nets = create_nets(solver, world.options(base));
  INFO((nets ? "" : nets.error().message));
  REQUIRE(nets.has_value());
  return std::move(nets).value();
}

std::string refusal(const caffe::SolverParameter& solver) {
  World world;
  const Result<SolverNets> nets = create_nets(solver, world.options());
  REQUIRE(!nets);
  CHECK(nets.error().code == ErrorCode::kConfig);
  return nets.error().message;
}

bool has_layer(const Net& net, const std::string& name) {
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->name() == name) return true;
  }
  return false;
}

TEST_CASE("one net serves both phases, with the same weights", "[solver_nets]") {
  World world;
  const SolverNets nets = nets_of(world, small_solver("test_iter: 1 test_interval: 10"));
  REQUIRE(nets.tests.size() == 1);
  CHECK(nets.train->phase() == Phase::kTrain);
  CHECK(nets.tests[0]->phase() == Phase::kTest);
  CHECK(!has_layer(*nets.train, "accuracy"));
  CHECK(has_layer(*nets.tests[0], "accuracy"));
  CHECK(nets.tests[0]->weights().data() == nets.train->weights().data());
}

TEST_CASE("exactly one field names the train net", "[solver_nets]") {
  CHECK(refusal(parse_solver("lr_policy: \"fixed\"")).find("none of the fields") !=
        std::string::npos);
  caffe::SolverParameter two = small_solver();
  *two.mutable_train_net_param() = two.net_param();
  CHECK(refusal(two).find("2 of the fields") != std::string::npos);
}

TEST_CASE("test_iter must match the test nets", "[solver_nets]") {
  caffe::SolverParameter solver = small_solver("test_interval: 10");
  *solver.add_test_net_param() = solver.net_param();
  CHECK(refusal(solver).find("test_iter must be given") != std::string::npos);

  solver.add_test_iter(1);
  solver.add_test_iter(2);  // the second is for the shared net
  World world;
  CHECK(nets_of(world, solver).tests.size() == 2);

  // Without a shared net there must be one for each, no more.
  solver.mutable_train_net_param()->Swap(solver.mutable_net_param());
  solver.clear_net_param();
  CHECK(refusal(solver).find("test_iter must be given") != std::string::npos);
  CHECK(refusal(small_solver("test_iter: 1")).find("test_interval") != std::string::npos);
  CHECK(refusal(small_solver("test_iter: -1 test_interval: 1")).find("test_iter is -1") !=
        std::string::npos);
  CHECK(refusal(small_solver("test_iter: 1 test_interval: 1 test_state {} test_state {}"))
            .find("test_state") != std::string::npos);
}

// A layer that is there only in one stage.
std::string staged_net() {
  return net_text() +
         " layer { name: \"extra\" type: \"Silence\" bottom: \"ip2\" include { stage: \"more\" } }";
}

TEST_CASE("states are merged: phase, then the net's, then the solver's", "[solver_nets]") {
  const auto solver_with = [](const std::string& net_state, const std::string& solver_state) {
    return parse_solver("lr_policy: \"fixed\" test_iter: 1 test_interval: 1 " + solver_state +
                        " net_param { " + staged_net() + net_state + " }");
  };
  World world;
  const std::string more = "{ stage: \"more\" }";
  const SolverNets plain = nets_of(world, solver_with("", ""));
  CHECK(!has_layer(*plain.train, "extra"));
  CHECK(!has_layer(*plain.tests[0], "extra"));

  const SolverNets of_net = nets_of(world, solver_with(" state " + more, ""));
  CHECK(has_layer(*of_net.train, "extra"));
  CHECK(has_layer(*of_net.tests[0], "extra"));

  const SolverNets of_train = nets_of(world, solver_with("", "train_state " + more));
  CHECK(has_layer(*of_train.train, "extra"));
  CHECK(!has_layer(*of_train.tests[0], "extra"));

  const SolverNets of_test = nets_of(world, solver_with("", "test_state " + more));
  CHECK(!has_layer(*of_test.train, "extra"));
  CHECK(has_layer(*of_test.tests[0], "extra"));
}

TEST_CASE("net files are found beside the solver; their data beside them", "[solver_nets]") {
  const TempDir folder;
  write(folder / "nets/train.prototxt", net_text());
  write(folder / "tests/test.prototxt", net_text());
  const auto solver = parse_solver(
      "lr_policy: \"fixed\" train_net: \"nets/train.prototxt\" test_net: \"tests/test.prototxt\" "
      "test_iter: 1 test_interval: 1");
  World world;
  nets_of(world, solver, folder.path());
  REQUIRE(world.feeds.bases.size() == 2);
  CHECK(fs::equivalent(world.feeds.bases[0], folder / "nets"));
  CHECK(fs::equivalent(world.feeds.bases[1], folder / "tests"));
}

TEST_CASE("HDF5 snapshots need names of layers that HDF5 can keep", "[solver_nets]") {
  for (const char* name : {".", "./a", "a//b", "/a", "a/", ""}) {
    INFO(name);
    caffe::SolverParameter solver = small_solver();
    for (caffe::LayerParameter& layer : *solver.mutable_net_param()->mutable_layer()) {
      if (layer.type() == "InnerProduct") {
        layer.set_name(name);
        break;
      }
    }
    World world;
    CHECK(nets_of(world, solver).train != nullptr);
    solver.set_snapshot_format(caffe::SolverParameter::HDF5);
    CHECK(refusal(solver).find("a layer named '" + std::string(name) + "'") != std::string::npos);
  }
}

TEST_CASE("HDF5 snapshots need layers apart from the parameters of others", "[solver_nets]") {
  caffe::SolverParameter solver = small_solver("snapshot_format: HDF5");
  World world;
  REQUIRE(nets_of(world, solver).train != nullptr);
  for (const caffe::LayerParameter& layer : solver.net_param().layer()) {
    if (layer.type() != "InnerProduct") continue;
    caffe::LayerParameter& below = *solver.mutable_net_param()->add_layer();
    below.set_name(layer.name() + "/0");
    below.set_type("Parameter");
    below.add_top("below");
    below.mutable_parameter_param()->mutable_shape()->add_dim(1);
    break;
  }
  const std::string below = solver.net_param().layer().rbegin()->name();
  CHECK(refusal(solver).find("a layer named '" + below + "'") != std::string::npos);
}

TEST_CASE("a missing or malformed net file is named", "[solver_nets]") {
  const TempDir folder;
  World world;
  const auto solver = parse_solver("lr_policy: \"fixed\" net: \"absent.prototxt\"");
  const auto missing = create_nets(solver, world.options(folder.path()));
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::kConfig);
  CHECK(missing.error().message.find("absent.prototxt") != std::string::npos);

  write(folder / "absent.prototxt", "name: \"x\"\nlayer { nonsense: 1 }");
  const auto malformed = create_nets(solver, world.options(folder.path()));
  REQUIRE(!malformed);
  CHECK(malformed.error().code == ErrorCode::kConfig);
  CHECK(malformed.error().message.find("absent.prototxt:2") != std::string::npos);
}

TEST_CASE("inline nets need no files any more", "[solver_nets]") {
  const TempDir folder;
  write(folder / "nets/net.prototxt", net_text());
  write(folder / "other.prototxt", net_text());
  auto solver = parse_solver(
      "lr_policy: \"fixed\" net: \"nets/net.prototxt\" test_net: \"other.prototxt\" test_iter: 1 "
      "test_iter: 2 test_interval: 1");
  const Result<fs::path> base = inline_nets(solver, folder.path());
  REQUIRE(base.has_value());
  CHECK(fs::equivalent(*base, folder / "nets"));
  CHECK(!solver.has_net());
  CHECK(solver.has_net_param());
  CHECK(solver.test_net_size() == 0);
  CHECK(solver.test_net_param_size() == 1);
  World world;
  CHECK(nets_of(world, solver).tests.size() == 2);
}

TEST_CASE("a missing seed is settled once", "[solver_nets]") {
  auto solver = parse_solver("lr_policy: \"fixed\"");
  settle_seed(solver);
  const std::int64_t seed = solver.random_seed();
  CHECK(seed >= 0);
  settle_seed(solver);
  CHECK(solver.random_seed() == seed);
}

}  // namespace
}  // namespace speedo
