#include "formats/safetensors_file.hpp"

#include <cstring>
#include <fstream>
#include <limits>

#include <speedo/base/random.hpp>

#include "core/net_support.hpp"
#include "core/prototxt.hpp"
#include "formats/import_weights.hpp"
#include "formats/weight_names.hpp"
#include "support/random_seed.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

std::string with_length(const std::string& header, const std::string& data) {
  std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

class Folder {
 public:
  std::string write(const std::string& bytes) {
    const std::string path = (dir_.path() / "file.safetensors").string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string path() const { return (dir_.path() / "file.safetensors").string(); }

 private:
  TempDir dir_;
};

std::string error_of(const std::string& header, std::size_t data_bytes) {
  Folder folder;
  const std::string path = folder.write(with_length(header, std::string(data_bytes, 'x')));
  const auto file = SafetensorsFile::open(path);
  REQUIRE_FALSE(file.has_value());
  CHECK(file.error().code == ErrorCode::kData);
  CHECK(file.error().message.starts_with(path + ": "));
  return file.error().message.substr(path.size() + 2);
}

TEST_CASE("names of weights") {
  caffe::LayerParameter layer;
  layer.set_name("a");
  layer.set_type("Convolution");
  CHECK(weight_name(layer, 0, 2) == "a.weight");
  CHECK(weight_name(layer, 1, 2) == "a.bias");
  CHECK(weight_name(layer, 2, 3) == "a.2");
  layer.set_type("LSTM");
  CHECK(weight_name(layer, 2, 3) == "a.weight_h");
  CHECK(weight_name(layer, 2, 4) == "a.weight_static");
  layer.set_type("RNN");
  CHECK(weight_name(layer, 5, 6) == "a.bias_o");
  CHECK(weight_name(layer, 4, 5) == "a.bias_o");
  layer.set_type("Scale");
  layer.add_bottom("x");
  CHECK(weight_name(layer, 0, 1) == "a.weight");
  layer.add_bottom("factor");
  CHECK(weight_name(layer, 0, 1) == "a.bias");
}

TEST_CASE("every type of float is read, all else refused") {
  Folder folder;
  const std::string data(
      "\x00\x3c\x00\xc0\x01\x00\x00\x7c"   // F16: 1, -2, 2^-24, infinity
      "\x80\x3f"                           // BF16: 1
      "\x00\x00\x00\x40"                   // F32: 2
      "\x00\x00\x00\x00\x00\x00\x08\x40",  // F64: 3
      22);
  const std::string path = folder.write(with_length(
      R"({"__metadata__":{"a":"b"},"d":{"dtype":"F64","shape":[1],"data_offsets":[14,22]},)"
      R"("h":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},)"
      R"("f":{"dtype":"F32","shape":[1,1],"data_offsets":[10,14]}})",
      data));
  const auto file = SafetensorsFile::open(path);
  if (!file) FAIL(file.error().message);
  CHECK(file->metadata().at("a") == "b");
  std::vector<float> all;
  for (const StoredTensor& tensor : file->tensors()) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.count()));
    REQUIRE(file->read(tensor, values));
    all.insert(all.end(), values.begin(), values.end());
  }
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(all == std::vector<float>{1.0F, -2.0F, 0x1p-24F, infinity, 1.0F, 2.0F, 3.0F});
}

TEST_CASE("integers may lie in a file beside what is read, and are not read themselves") {
  Folder folder;
  const std::string path = folder.write(with_length(
      R"({"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("f":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
      std::string("\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40", 12)));
  const auto file = SafetensorsFile::open(path);
  if (!file) FAIL(file.error().message);
  REQUIRE(file->tensors().size() == 2);
  std::vector<float> value(1);
  REQUIRE(file->read(file->tensors()[1], value));
  CHECK(value[0] == 2.0F);
  const auto refused = file->read(file->tensors()[0], value);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("tensor 'n'") != std::string::npos);
}

TEST_CASE("a header that lies is refused, with the tensor's name") {
  const auto one = [](const std::string& type, const std::string& shape, const std::string& at) {
    return R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + at +
           "}}";
  };
  CHECK(error_of(one("C64", "[1]", "[0,8]"), 8).find("dtype C64 is not known") !=
        std::string::npos);
  CHECK(error_of(one("I64", "[1]", "[0,4]"), 4).starts_with("tensor 'a': its shape"));
  CHECK(error_of(one("F32", "[2]", "[0,4]"), 4).starts_with("tensor 'a': its shape 2 (2) of F32"));
  CHECK(error_of(one("F32", "[2]", "[8,0]"), 8).starts_with("tensor 'a': its shape"));
  CHECK(error_of(one("F32", "[2]", "[0,8]"), 4).find("ends at byte 8, the file has 4") !=
        std::string::npos);
  CHECK(error_of(one("F32", "[1]", "[0,4]"), 8) == "4 bytes of data are no tensor's");
  CHECK(error_of(one("F32", "[1]", "[4,8]"), 8).find("begins at byte 4") != std::string::npos);
  CHECK(error_of(one("F32", "[-1]", "[0,4]"), 4).find("-1 is negative") != std::string::npos);
  CHECK(error_of(one("F32", "[1.5]", "[0,4]"), 4).find("1.5 is no whole number") !=
        std::string::npos);
  // A product beyond 64 bits, and one that is none.
  CHECK(error_of(one("F32", "[4294967296,4294967296,4294967296]", "[0,4]"), 4)
            .starts_with("tensor 'a': "));
  CHECK(error_of(one("F32", "[18446744073709551615]", "[0,4]"), 4).starts_with("tensor 'a': "));
  CHECK(error_of(one("F32", "[[[[1]]]]", "[0,4]"), 4).find("a list has no meaning here") !=
        std::string::npos);
  CHECK(error_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                 4)
            .starts_with("tensor 'b': its data begins at byte 0"));
  CHECK(error_of(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                 R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
                 0) == "tensor 'a': is there twice");
  CHECK(error_of(R"({"a":{"dtype":"F32","dtype":"F32"}})", 0) ==
        "tensor 'a': dtype is there twice");
  CHECK(error_of(R"({"a":{"dtype":"F32"}})", 0).find("needs dtype, shape") != std::string::npos);
  CHECK(error_of(R"({"a":{"kind":"F32"}})", 0) == "tensor 'a': kind is not known");
  CHECK(error_of(R"({"a\u001b[31m":{}})", 0).find("'number 1': its name has control") !=
        std::string::npos);
  CHECK(error_of("{\"" + std::string(5000, 'x') + "\":{}}", 0).size() < 100);
  CHECK(error_of("[1]", 0) == "the header is no JSON object");
  CHECK(error_of("{\"a\":", 0).find("of the header is no JSON") != std::string::npos);
  // A million levels.
  CHECK_FALSE(error_of(R"({"a":{"shape":)" + std::string(1000000, '['), 0).empty());
}

TEST_CASE("a file that is cut short or no such file is refused") {
  Folder folder;
  const auto refused = [&](const std::string& bytes) {
    const auto file = SafetensorsFile::open(folder.write(bytes));
    return !file.has_value() && file.error().code == ErrorCode::kData;
  };
  CHECK(refused(""));
  CHECK(refused("1234567"));
  CHECK(refused(std::string(8, '\xff') + "{}"));
  CHECK(refused(with_length("{}", "").substr(0, 9)));
  CHECK_FALSE(refused(with_length("{}", "")));
  const auto missing = SafetensorsFile::open(folder.path() + ".not");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == ErrorCode::kNotFound);
}

TEST_CASE("whatever a file's bytes are, it is read or refused") {
  const std::string good = with_length(
      R"({"__metadata__":{"a":"b"},"d":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},)"
      R"("h":{"dtype":"F16","shape":[2,2],"data_offsets":[16,24]}})",
      std::string(24, '\1'));
  Folder folder;
  Random random(test::fresh_seed());
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string bytes = good;
    for (std::uint64_t change = 1 + random.below(3); change > 0; --change) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size() + 20));
    const auto file = SafetensorsFile::open(folder.write(bytes));
    if (!file) {
      CHECK(file.error().code == ErrorCode::kData);
      ++refused;
      continue;
    }
    for (const StoredTensor& tensor : file->tensors()) {
      std::vector<float> values(static_cast<std::size_t>(tensor.shape.count()));
      CHECK(file->read(tensor, values));
    }
  }
  CHECK(refused > 100);
}

constexpr const char* kShared = R"(
  layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
  layer { name: "a" type: "InnerProduct" bottom: "x" top: "a"
          param { name: "w" } param { name: "b" }
          inner_product_param { num_output: 3 weight_filler { type: "uniform" min: 0.1 } } }
  layer { name: "s" type: "InnerProduct" bottom: "a" top: "s"
          param { name: "w" } param { name: "b" }
          inner_product_param { num_output: 3 } }
  layer { name: "n" type: "BatchNorm" bottom: "s" top: "s" })";

TEST_CASE("weights come back as they were written, shared ones from one of their layers") {
  Folder folder;
  const auto net = make_net(kShared, net_options(Phase::kTest));
  caffe::NetParameter model;
  net->to_proto(model, false);
  REQUIRE(write_safetensors(folder.path(), model, {{"net", "shared"}}));
  const auto file = SafetensorsFile::open(folder.path());
  if (!file) FAIL(file.error().message);
  CHECK(file->tensors().size() == 7);
  CHECK(file->metadata().at("net") == "shared");

  NetOptions other = net_options(Phase::kTest);
  other.seed = 77;
  const auto target = make_net(kShared, other);
  const auto gaps = import_weights(*file, *target);
  if (!gaps) FAIL(gaps.error().message);
  CHECK(gaps->missing.empty());
  CHECK(gaps->surplus.empty());
  caffe::NetParameter again;
  target->to_proto(again, false);
  CHECK(again.SerializeAsString() == model.SerializeAsString());
}

TEST_CASE("layers that share a parameter have one value for it in a file, or it is refused") {
  Folder folder;
  const auto net = make_net(kShared, net_options(Phase::kTest));
  caffe::NetParameter model;
  net->to_proto(model, false);
  REQUIRE(model.layer(2).name() == "s");
  model.mutable_layer(2)->mutable_blobs(0)->set_data(4, 5.0F);
  REQUIRE(write_safetensors(folder.path(), model, {}));
  const auto refused = import_weights(*SafetensorsFile::open(folder.path()), *net);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kMismatch);
  CHECK(refused.error().message.find("tensors 'a.weight' and 's.weight' have different values") !=
        std::string::npos);
}

constexpr const char* kTwoPhases = R"(
  layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip" param { name: "w" }
          inner_product_param { num_output: 2 weight_filler { type: "uniform" min: 0.1 } } }
  layer { name: "aux" type: "InnerProduct" bottom: "x" top: "aux" include { phase: TRAIN }
          param { name: "w" } inner_product_param { num_output: 2 } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "aux" bottom: "ip" top: "loss"
          include { phase: TRAIN } })";

// What a file with tensors of one value each is read as, for the layers of training alone.
struct Others {
  ImportGaps gaps;
  Result<std::vector<caffe::LayerParameter>> layers;
};

Others read_others(const std::vector<std::pair<std::string, std::vector<int>>>& tensors) {
  Folder folder;
  caffe::NetParameter model;
  for (const auto& [layer, extents] : tensors) {
    if (model.layer_size() == 0 || model.layer(model.layer_size() - 1).name() != layer) {
      model.add_layer()->set_name(layer);
    }
    caffe::BlobProto& blob = *model.mutable_layer(model.layer_size() - 1)->add_blobs();
    int count = 1;
    for (const int extent : extents) {
      blob.mutable_shape()->add_dim(extent);
      count *= extent;
    }
    for (int i = 0; i < count; ++i) blob.add_data(1.0F);
  }
  REQUIRE(write_safetensors(folder.path(), model, {}));
  const auto file = SafetensorsFile::open(folder.path());
  REQUIRE(file.has_value());
  const auto net = make_net(kTwoPhases, net_options(Phase::kTrain));
  std::vector<caffe::LayerParameter> layers(2);
  layers[0].set_name("aux");
  layers[0].set_type("InnerProduct");
  layers[1].set_name("loss");
  layers[1].set_type("EuclideanLoss");
  ImportGaps gaps;
  for (const StoredTensor& tensor : file->tensors()) gaps.surplus.push_back(tensor.name);
  auto read = import_others(*file, layers, parameter_shapes(*net), gaps);
  return {gaps, std::move(read)};
}

TEST_CASE("layers of training alone are read whole, in the shapes that training has them in") {
  using Names = std::vector<std::string>;
  const Others whole = read_others({{"aux", {2, 3}}, {"aux", {2}}});
  REQUIRE(whole.layers.has_value());
  REQUIRE(whole.layers->size() == 1);
  CHECK(whole.layers->front().blobs_size() == 2);
  CHECK(whole.gaps.surplus.empty());

  const Others part = read_others({{"aux", {2, 3}}});
  REQUIRE(part.layers.has_value());
  CHECK(part.layers->empty());
  CHECK(part.gaps.missing == Names{"aux.bias"});
  CHECK(part.gaps.partial == Names{"aux.0"});

  const Others more = read_others({{"aux", {2, 3}}, {"aux", {2}}, {"aux", {2}}});
  REQUIRE(more.layers.has_value());
  CHECK(more.layers->size() == 1);
  CHECK(more.gaps.surplus == Names{"aux.2"});

  const Others other = read_others({{"aux", {3, 2}}, {"aux", {2}}});
  REQUIRE_FALSE(other.layers.has_value());
  CHECK(other.layers.error().code == ErrorCode::kMismatch);
  CHECK(other.layers.error().message.find("needs 2 3 (6)") != std::string::npos);

  const Others none = read_others({{"loss", {1}}});
  REQUIRE(none.layers.has_value());
  CHECK(none.layers->empty());
  CHECK(none.gaps.surplus == Names{"loss.0"});
}

TEST_CASE("layers of one phase that share a parameter have one value for it") {
  const auto net = make_net(kTwoPhases, net_options(Phase::kTrain));
  const caffe::NetParameter whole = *parse_net_prototxt(kTwoPhases, "net");
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  caffe::NetParameter model;
  net->to_proto(model, false);
  CHECK(check_shared(whole, state, model, {}));
  for (caffe::LayerParameter& layer : *model.mutable_layer()) {
    if (layer.name() == "ip") layer.mutable_blobs(0)->set_data(0, 9.0F);
  }
  const auto refused = check_shared(whole, state, model, {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kMismatch);
  CHECK(refused.error().message.find("'ip.weight' and 'aux.weight' have different values") !=
        std::string::npos);
  CHECK(check_shared(whole, state, model, {"ip.weight"}));
  state.set_phase(caffe::TEST);
  CHECK(check_shared(whole, state, model, {}));
}

TEST_CASE("no memory is taken for what a damaged model claims") {
  Folder folder;
  caffe::NetParameter model;
  caffe::LayerParameter& layer = *model.add_layer();
  layer.set_name("ip");
  for (int i = 0; i < 64; ++i) {
    caffe::BlobProto& blob = *layer.add_blobs();
    for (const int extent : {46340, 46340}) blob.mutable_shape()->add_dim(extent);
    blob.add_data(1.0F);
  }
  const auto written = write_safetensors(folder.path(), model, {});
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ErrorCode::kData);
}

TEST_CASE("what a file and a net have not in common is named") {
  Folder folder;
  const auto net = make_net(kShared, net_options(Phase::kTest));
  const std::string path =
      folder.write(with_length(R"({"a.0":{"dtype":"F32","shape":[3,3],"data_offsets":[0,36]},)"
                               R"("z.weight":{"dtype":"F32","shape":[1],"data_offsets":[36,40]}})",
                               std::string(40, '\0')));
  const auto gaps = import_weights(*SafetensorsFile::open(path), *net);
  if (!gaps) FAIL(gaps.error().message);
  CHECK(gaps->missing ==
        std::vector<std::string>{"a.bias", "n.mean_sum", "n.variance_sum", "n.weight"});
  CHECK(gaps->surplus == std::vector<std::string>{"z.weight"});

  const std::string wrong = folder.write(with_length(
      R"({"a.weight":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}})", std::string(36, '\0')));
  const auto refused = import_weights(*SafetensorsFile::open(wrong), *net);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kMismatch);
  CHECK(refused.error().message.find("tensor 'a.weight' has the shape 9 (9), layer 'a' "
                                     "(InnerProduct) needs 3 3 (9)") != std::string::npos);
}

TEST_CASE("weights that are not finite are refused, with the tensor's name") {
  Folder folder;
  const auto net = make_net(kShared, net_options(Phase::kTest));
  const std::string path = folder.write(
      with_length(R"({"a.weight":{"dtype":"F32","shape":[3,3],"data_offsets":[0,36]}})",
                  std::string(32, '\0') + "\xff\xff\xff\x7f"));
  const auto refused = import_weights(*SafetensorsFile::open(path), *net);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kData);
  CHECK(refused.error().message.find("'a.weight' has values that are NaN") != std::string::npos);
}

}  // namespace
}  // namespace speedo
