#include "data/model_files.hpp"

#include "data/hdf5/hdf5_file.hpp"
#include "data_support.hpp"

namespace speedo {
namespace {

void add_blob(caffe::LayerParameter& layer, float first, bool with_diff) {
  caffe::BlobProto& blob = *layer.add_blobs();
  blob.mutable_shape()->add_dim(2);
  blob.mutable_shape()->add_dim(1);
  blob.add_data(first);
  blob.add_data(first + 1);
  if (!with_diff) return;
  blob.add_diff(-first);
  blob.add_diff(-first - 1);
}

// Two layers that share their first parameter by name, one without parameters, one with '/' in its
// name.
caffe::NetParameter small_net(bool with_diff) {
  caffe::NetParameter net;
  net.set_name("small");
  for (const char* name : {"one", "two"}) {
    caffe::LayerParameter& layer = *net.add_layer();
    layer.set_name(name);
    layer.set_type("InnerProduct");
    layer.add_param()->set_name("shared");
    add_blob(layer, 1, with_diff);
    add_blob(layer, name[0] == 'o' ? 3.0F : 5.0F, with_diff);
  }
  net.add_layer()->set_name("relu");
  caffe::LayerParameter& nested = *net.add_layer();
  nested.set_name("inception/1x1");
  add_blob(nested, 7, with_diff);
  return net;
}

const caffe::LayerParameter& layer_named(const caffe::NetParameter& net, const std::string& name) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (layer.name() == name) return layer;
  }
  FAIL("no layer " << name);
  return net.layer(0);
}

TEST_CASE("weights in HDF5 have Caffe's layout: a group a layer, shared parameters once") {
  const TempDir folder;
  REQUIRE(write_model(folder / "m.caffemodel.h5", small_net(false), caffe::SolverParameter::HDF5));
  const auto file = Hdf5Reader::open(folder / "m.caffemodel.h5");
  REQUIRE(file);
  CHECK(file->children("/").value() == std::vector<std::string>{"data"});
  CHECK(file->children("/data/one").value() == std::vector<std::string>{"0", "1"});
  CHECK(file->children("/data/two").value() == std::vector<std::string>{"1"});
  CHECK(file->children("/data/relu").value().empty());
  CHECK(file->dims("/data/one/0").value() == std::vector<std::int64_t>{2, 1});
  CHECK(file->read_floats("/data/inception/1x1/0").value() == std::vector<float>{7, 8});
}

TEST_CASE("weights in HDF5 come back by layer name") {
  const TempDir folder;
  for (const bool with_diff : {false, true}) {
    REQUIRE(write_model(folder / "m", small_net(with_diff), caffe::SolverParameter::HDF5));
    const auto net = read_model(folder / "m");
    REQUIRE(net);
    CHECK(net->layer_size() == 4);
    CHECK(layer_named(*net, "relu").blobs_size() == 0);
    const caffe::LayerParameter& two = layer_named(*net, "two");
    REQUIRE(two.blobs_size() == 2);
    CHECK(two.blobs(0).data_size() == 0);  // under its owner
    CHECK_FALSE(two.blobs(0).has_shape());
    CHECK(two.blobs(1).data(1) == 6.0F);
    const caffe::BlobProto& nested = layer_named(*net, "inception/1x1").blobs(0);
    CHECK(nested.shape().dim_size() == 2);
    CHECK(nested.diff_size() == (with_diff ? 2 : 0));
    if (with_diff) CHECK(nested.diff(1) == -8.0F);
  }
}

TEST_CASE("HDF5 refuses parameters that it could not find again") {
  const TempDir folder;
  for (const char* name : {".", "a/./b", "a//b", "/a", "a/", ""}) {
    caffe::NetParameter net;
    net.add_layer()->set_name(name);
    CHECK(write_model(folder / "m.h5", net, caffe::SolverParameter::HDF5));
    net.mutable_layer(0)->add_blobs()->add_data(1.0F);
    check_error(write_model(folder / "m.h5", net, caffe::SolverParameter::HDF5),
                ErrorCode::kConfig, "a layer named '" + std::string(name) + "'");
  }
}

TEST_CASE("HDF5 refuses parameters whose layer lies where another's parameter does") {
  const TempDir folder;
  for (const char* name : {"one/0", "one/1/b", "one"}) {
    CAPTURE(name);
    caffe::NetParameter net = small_net(false);
    caffe::LayerParameter& layer = *net.add_layer();
    layer.set_name(name);
    REQUIRE(write_model(folder / "m.h5", net, caffe::SolverParameter::HDF5));
    CHECK(layer_named(read_model(folder / "m.h5").value(), "one").blobs_size() == 2);
    add_blob(layer, 1, false);
    check_error(write_model(folder / "m.h5", net, caffe::SolverParameter::HDF5),
                ErrorCode::kConfig, "a layer named '" + std::string(name) + "'");
  }
}

TEST_CASE("binary weights are read by content, whatever their name") {
  const TempDir folder;
  REQUIRE(
      write_model(folder / "m.anything", small_net(false), caffe::SolverParameter::BINARYPROTO));
  const auto net = read_model(folder / "m.anything");
  REQUIRE(net);
  CHECK(net->name() == "small");
  CHECK(layer_named(*net, "two").blobs(0).data(0) == 1.0F);
}

TEST_CASE("solver states come back from both formats") {
  const TempDir folder;
  caffe::SolverState state;
  state.set_iter(1234);
  state.set_current_step(3);
  state.set_learned_net("snap/x_iter_1234.caffemodel.h5");
  for (int i = 0; i < 12; ++i) {
    caffe::BlobProto& blob = *state.add_history();
    blob.mutable_shape()->add_dim(1);
    blob.add_data(static_cast<float>(i));
  }
  for (const auto format : {caffe::SolverParameter::HDF5, caffe::SolverParameter::BINARYPROTO}) {
    REQUIRE(write_solver_state(folder / "s", state, format));
    const auto back = read_solver_state(folder / "s");
    REQUIRE(back);
    CHECK(back->SerializeAsString() == state.SerializeAsString());
  }
}

TEST_CASE("bad weight and state files are named errors") {
  const TempDir folder;
  check_error(read_model(folder / "none.h5"), ErrorCode::kNotFound, "none.h5");
  check_error(read_model(folder / "none"), ErrorCode::kNotFound, "none");
  REQUIRE(write_model(folder / "m.h5", small_net(false), caffe::SolverParameter::HDF5));
  const std::string whole = read_bytes(folder / "m.h5");
  for (std::size_t cut = 0; cut < whole.size(); cut += 97) {
    write_bytes(folder / "cut.h5", whole.substr(0, cut));
    const auto net = read_model(folder / "cut.h5");
    INFO("cut at " << cut);
    REQUIRE_FALSE(net);
    CHECK(net.error().code == ErrorCode::kData);
  }
  {
    auto file = Hdf5Writer::create(folder / "odd.h5");
    REQUIRE(file);
    REQUIRE(file->add_integers("/iter", std::vector<int>{1}));
    REQUIRE(file->add_group("/history"));
    REQUIRE(file->commit());
  }
  check_error(read_model(folder / "odd.h5"), ErrorCode::kData, "no group '/data'");
  check_error(read_solver_state(folder / "odd.h5"), ErrorCode::kData, "/current_step");
  check_error(read_solver_state(folder / "m.h5"), ErrorCode::kData, "/iter");
  {
    auto file = Hdf5Writer::create(folder / "odd.h5");
    REQUIRE(file);
    REQUIRE(file->add_string("/data/layer/weights", "x"));
    REQUIRE(file->commit());
  }
  check_error(read_model(folder / "odd.h5"), ErrorCode::kData, "not a layer's parameter");
}

TEST_CASE("files that cannot be written are errors, and the old one stays") {
  const TempDir folder;
  for (const auto format : {caffe::SolverParameter::HDF5, caffe::SolverParameter::BINARYPROTO}) {
    check_error(write_model(folder / "none" / "m", small_net(false), format),
                ErrorCode::kCannotWrite, "m");
  }
  caffe::NetParameter bad = small_net(false);
  bad.mutable_layer(3)->mutable_blobs(0)->add_data(1);  // more values than its shape
  write_bytes(folder / "m.h5", "old");
  CHECK_FALSE(write_model(folder / "m.h5", bad, caffe::SolverParameter::HDF5));
  CHECK(read_bytes(folder / "m.h5") == "old");
}

}  // namespace
}  // namespace speedo
