#include "core/upgrade/upgrade.hpp"

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <speedo/base/file.hpp>

#include "core/blob_proto.hpp"
#include "core/prototxt.hpp"
#include "core/weight_file.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

const std::string kUpgradeFolder = "tests/core/data/upgrade/";

std::string text_of(const std::string& path) {
  auto text = read_file(path);
  REQUIRE(text.has_value());
  return *text;
}

TEST_CASE("old nets become what Caffe's own upgrade makes of them", "[upgrade]") {
  const std::string name =
      GENERATE(as<std::string>(), "v0_padding_testsimple", "v1_testsimple", "legacy_input_fields",
               "legacy_data_transform", "legacy_batchnorm_params", "input_testallparams");
  INFO(name);
  const auto net = read_net_prototxt(kUpgradeFolder + name + ".in.prototxt");
  REQUIRE(net.has_value());
  caffe::NetParameter expected;
  REQUIRE(
      parse_prototxt(text_of(kUpgradeFolder + name + ".out.prototxt"), name, expected).has_value());
  CHECK(to_prototxt(*net) == to_prototxt(expected));
  // A current net stays as it is.
  caffe::NetParameter again = *net;
  REQUIRE(upgrade_net(again).has_value());
  CHECK(to_prototxt(again) == to_prototxt(*net));
}

TEST_CASE("a V1 layer beside a V0 layer keeps its weights and their multipliers", "[upgrade]") {
  const auto net = parse_net_prototxt(
      "input: 'd' input_dim: 1 input_dim: 1 input_dim: 1 input_dim: 2 "
      "layers { bottom: 'd' top: 'r' layer { name: 'r' type: 'relu' } } "
      "layers { bottom: 'r' top: 'i' name: 'i' type: INNER_PRODUCT blobs_lr: 1 blobs_lr: 2 "
      "weight_decay: 3 weight_decay: 0 blobs { data: 5 } inner_product_param { num_output: 1 } }",
      "net");
  REQUIRE(net.has_value());
  const caffe::LayerParameter& layer = net->layer(net->layer_size() - 1);
  CHECK(layer.type() == "InnerProduct");
  REQUIRE(layer.param_size() == 2);
  CHECK(layer.param(1).lr_mult() == 2.0F);
  CHECK(layer.param(0).decay_mult() == 3.0F);
  REQUIRE(layer.blobs_size() == 1);
  CHECK(layer.blobs(0).data(0) == 5.0F);
}

TEST_CASE("solver_type becomes type", "[upgrade]") {
  const auto solver =
      parse_solver_prototxt(text_of(kUpgradeFolder + "solver_nesterov.in.prototxt"), "solver");
  REQUIRE(solver.has_value());
  caffe::SolverParameter expected;
  REQUIRE(parse_prototxt(text_of(kUpgradeFolder + "solver_nesterov.out.prototxt"), "out", expected)
              .has_value());
  CHECK(to_prototxt(*solver) == to_prototxt(expected));
  CHECK_FALSE(parse_solver_prototxt("solver_type: SGD type: \"SGD\"", "s").has_value());
}

TEST_CASE("old nets that make no sense are errors", "[upgrade]") {
  const auto refused = [](const std::string& text) {
    const auto net = parse_net_prototxt(text, "net");
    return !net.has_value() && net.error().code == ErrorCode::kConfig;
  };
  CHECK(refused("layers { layer { name: 'x' type: 'nonsense' } }"));
  CHECK(refused("layers { name: 'x' type: RELU } layer { name: 'y' type: 'ReLU' }"));
  CHECK(refused("input: 'a' input_dim: 1 input_dim: 2 input_dim: 3"));
  CHECK(refused("input: 'a' input: 'b' input_shape { dim: 1 }"));
  CHECK(refused("layers { bottom: 'none' layer { name: 'x' type: 'relu' } }"));
  // A padding layer in front of something that cannot pad.
  CHECK(refused(
      "input: 'd' layers { bottom: 'd' top: 'p' layer { name: 'p' type: 'padding' pad: 1 } }"
      "layers { bottom: 'p' top: 'r' layer { name: 'r' type: 'relu' } }"));
}

TEST_CASE("a V1 model file with four-axis arrays reads as its upgraded form", "[weight_file]") {
  const auto old = read_caffemodel(kUpgradeFolder + "v1_legacy_blobs.caffemodel");
  const auto current = read_caffemodel(kUpgradeFolder + "v1_legacy_blobs.upgraded.caffemodel");
  REQUIRE(old.has_value());
  REQUIRE(current.has_value());
  const auto& layer = old->layer(old->layer_size() - 1);
  const auto& expected = current->layer(current->layer_size() - 1);
  CHECK(layer.type() == expected.type());
  REQUIRE(layer.blobs_size() == expected.blobs_size());
  CHECK(fits(layer.blobs(0), {4, 6}));
  CHECK_FALSE(fits(layer.blobs(0), {6, 4}));
  CHECK(fits(layer.blobs(1), {4}));
  std::vector<float> values(24);
  REQUIRE(read_values(layer.blobs(0), values).has_value());
  std::vector<float> expected_values(24);
  REQUIRE(read_values(expected.blobs(0), expected_values).has_value());
  CHECK(values == expected_values);
  CHECK_FALSE(read_values(layer.blobs(1), values).has_value());
}

TEST_CASE("values stored as double read as float", "[weight_file]") {
  const auto doubles = read_caffemodel(kUpgradeFolder + "double_blobs.caffemodel");
  const auto floats = read_caffemodel(kUpgradeFolder + "v1_legacy_blobs.caffemodel");
  REQUIRE(doubles.has_value());
  REQUIRE(floats.has_value());
  std::vector<float> a(24);
  std::vector<float> b(24);
  REQUIRE(read_values(doubles->layer(doubles->layer_size() - 1).blobs(0), a).has_value());
  REQUIRE(read_values(floats->layer(floats->layer_size() - 1).blobs(0), b).has_value());
  CHECK(a == b);
}

void check_refused(const Result<caffe::NetParameter>& net, const std::string& part) {
  REQUIRE_FALSE(net.has_value());
  CHECK(net.error().code == ErrorCode::kData);
  CHECK(net.error().message.find(part) != std::string::npos);
}

TEST_CASE("damaged and foreign weight files are named errors", "[weight_file]") {
  const TempDir folder;
  const auto path = folder / "bad.caffemodel";
  const std::string good = text_of(kUpgradeFolder + "v1_legacy_blobs.upgraded.caffemodel");
  // Cut anywhere inside the last layer, the file cannot be taken for a whole one.
  for (std::size_t length = good.size() - 100; length < good.size(); ++length) {
    std::ofstream(path, std::ios::binary).write(good.data(), static_cast<std::streamsize>(length));
    INFO(length);
    CHECK_FALSE(read_caffemodel(path).has_value());
  }
  std::ofstream(path).close();
  check_refused(read_caffemodel(path), "bad.caffemodel: is empty");
  std::ofstream(path) << "name: \"a prototxt\" layer { name: \"x\" }\n";
  check_refused(read_caffemodel(path), "bad.caffemodel");
  CHECK(read_caffemodel(folder / "none").error().code == ErrorCode::kNotFound);
  const auto not_a_state = read_solverstate(kUpgradeFolder + "double_blobs.caffemodel");
  REQUIRE_FALSE(not_a_state.has_value());
  CHECK(not_a_state.error().code == ErrorCode::kData);
}

TEST_CASE("states and arrays survive a round through a file", "[weight_file]") {
  const TempDir folder;
  caffe::SolverState state;
  state.set_iter(12);
  const auto values = set_shape_and_data({2, 3}, *state.add_history());
  REQUIRE(values.size() == 6);
  values[5] = 1.5F;
  REQUIRE(write_solverstate(folder / "s", state).has_value());
  const auto read = read_solverstate(folder / "s");
  REQUIRE(read.has_value());
  CHECK(read->SerializeAsString() == state.SerializeAsString());
  REQUIRE(write_blob_file(folder / "b", state.history(0)).has_value());
  const auto blob = read_blob_file(folder / "b");
  REQUIRE(blob.has_value());
  CHECK(*shape_of(*blob) == Shape{2, 3});
  CHECK_FALSE(write_solverstate(folder / "no" / "such" / "folder", state).has_value());
}

}  // namespace
}  // namespace speedo
