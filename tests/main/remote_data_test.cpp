// Commands whose data and model files lie on a server: they do what they do with local ones.

#include <filesystem>
#include <regex>

#include "caffe.pb.h"
#include "main/command_support.hpp"
#include "remote/remote_server.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

// Forty pictures of 28 x 28 in every form, in the folder of a server.
class ServedData {
 public:
  ServedData() {
    std::string table;
    Random random(7);
    for (int i = 0; i < 40; ++i) {
      for (int pixel = 0; pixel < 784; ++pixel) table += std::to_string(random.below(256)) + ",";
      table += std::to_string(i % 10) + "\n";
    }
    server.put("digits.csv", table);
    for (const std::string backend : {"lmdb", "leveldb", "datumfile", "hdf5"}) {
      const Outcome made = place.run(
          {"speedo", "convert", "csv", server.file("digits.csv").string(),
           server.file("digits_" + backend).string(), "--shape", "1,28,28", "--backend", backend});
      INFO(made.errors);
      REQUIRE(made.exit_code == 0);
    }
    server.put("list.txt", "digits_hdf5_0.h5\n");
  }

  // A LeNet whose data is `layer`, trained for some steps; its weights.
  std::string train(const std::string& layer, const std::vector<std::string>& flags = {}) {
    place.write("net.prototxt", layer + kLenet);
    const std::string solver =
        place.write("solver.prototxt", "net: \"" + place.file("net.prototxt") +
                                           "\" base_lr: 0.01 momentum: 0.9 lr_policy: \"fixed\" "
                                           "max_iter: 6 random_seed: 1 snapshot_prefix: \"" +
                                           place.file("snap") + "\"");
    std::vector<std::string> words = {"speedo", "train", "-solver", solver};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome trained = run(words);
    INFO(trained.errors);
    REQUIRE(trained.exit_code == 0);
    std::string learned = weights();
    fs::remove(place.file("snap_iter_6.caffemodel"));
    return learned;
  }

  // Of the last training, without where its data came from.
  std::string weights() const {
    caffe::NetParameter net;
    REQUIRE(net.ParseFromString(place.read("snap_iter_6.caffemodel")));
    REQUIRE(net.layer_size() > 5);
    net.mutable_layer(0)->Clear();
    return net.SerializeAsString();
  }

  Outcome run(const std::vector<std::string>& words) {
    return place.run(words, {"XDG_CACHE_HOME=" + place.file("cache")});
  }

  static std::string data_layer(const std::string& source, const std::string& backend) {
    return "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" "
           "transform_param { scale: 0.004 } data_param { source: \"" +
           source + "\" " + (backend.empty() ? "" : "backend: " + backend) + " batch_size: 8 } }";
  }
  static std::string hdf5_layer(const std::string& list) {
    return "layer { name: \"data\" type: \"HDF5Data\" top: \"data\" top: \"label\" "
           "hdf5_data_param { source: \"" +
           list +
           "\" batch_size: 8 } } layer { name: \"scale\" type: \"Power\" bottom: \"data\" "
           "top: \"data\" power_param { scale: 0.004 } }";
  }

  RemoteServer server;
  Context place;

  static constexpr const char* kLenet = R"(
    layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
            convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
    layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
            pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
    layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
            convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: "xavier" } } }
    layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
            pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
    layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
            inner_product_param { num_output: 500 weight_filler { type: "xavier" } } }
    layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
    layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
            inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" })";
};

TEST_CASE("LeNet learns from data on a server what it learns from the same data here") {
  ServedData data;
  const RemoteServer& server = data.server;
  const auto here = [&](const std::string& name) { return server.file(name).string(); };
  const std::string expected = data.train(ServedData::data_layer(here("digits_lmdb"), "LMDB"));

  CHECK((data.train(ServedData::data_layer(server.uri("digits_lmdb"), "LMDB")) == expected));
  CHECK((data.train(ServedData::data_layer(server.uri("digits_lmdb/"), "")) == expected));
  CHECK((data.train(ServedData::data_layer(server.uri("cut=20000/digits_lmdb"), "LMDB")) ==
         expected));
  CHECK(server.struck("cut") >= 2);
  CHECK((data.train(ServedData::data_layer(server.uri("digits_leveldb"), "LEVELDB")) == expected));
  CHECK((data.train(ServedData::data_layer(server.uri("digits_datumfile"), "")) == expected));
  CHECK((data.train(ServedData::data_layer("hdfs://" + server.address() + "/digits_lmdb",
                                           "LMDB")) == expected));
  CHECK((data.train(ServedData::hdf5_layer(server.uri("list.txt"))) ==
         data.train(ServedData::hdf5_layer(here("list.txt")))));
}

TEST_CASE("A solver, its net and the data may all lie beside each other on a server") {
  ServedData data;
  const RemoteServer& server = data.server;
  const std::string expected =
      data.train(ServedData::data_layer(server.file("digits_lmdb").string(), "LMDB"));
  const std::string net = data.place.read("net.prototxt");
  const std::string local = server.file("digits_lmdb").string();
  server.put("net.prototxt", std::regex_replace(net, std::regex(local), "digits_lmdb"));
  std::string solver = data.place.read("solver.prototxt");
  server.put(
      "solver.prototxt",
      std::regex_replace(solver, std::regex(data.place.file("net.prototxt")), "net.prototxt"));
  const Outcome trained = data.run({"speedo", "train", "-solver", server.uri("solver.prototxt")});
  INFO(trained.errors);
  REQUIRE(trained.exit_code == 0);
  CHECK((data.weights() == expected));

  // One that names no prefix for its snapshots: they come into the folder that it is called in.
  server.put("bare.prototxt", std::regex_replace(data.place.read("solver.prototxt"),
                                                 std::regex("snapshot_prefix: \"[^\"]*\""), ""));
  const Outcome bare =
      data.run({"/usr/bin/env", "-C", data.place.folder().string(), program("speedo"), "train",
                "-solver", server.uri("bare.prototxt")});
  INFO(bare.errors);
  REQUIRE(bare.exit_code == 0);
  CHECK(fs::exists(data.place.file("bare_iter_6.caffemodel")));

  fs::rename(data.place.file("snap_iter_6.caffemodel"), server.file("begin.caffemodel"));
  const std::string layer = ServedData::data_layer(server.uri("digits_lmdb"), "LMDB");
  const std::string local_model = server.file("begin.caffemodel").string();
  CHECK((data.train(layer, {"-weights", server.uri("begin.caffemodel")}) ==
         data.train(layer, {"-weights", local_model})));
}

TEST_CASE("Weights of another format, and the net that they are for, are imported from a server") {
  ServedData data;
  const RemoteServer& server = data.server;
  data.train(ServedData::data_layer(server.file("digits_lmdb").string(), "LMDB"));
  data.place.write("net.prototxt",
                   ServedData::data_layer(server.uri("digits_lmdb"), "LMDB") + ServedData::kLenet);
  const std::string model = data.place.file("net.prototxt");
  server.put("net.prototxt", data.place.read("net.prototxt"));
  const std::string weights = server.file("w.safetensors").string();
  const auto succeeds = [&](const std::vector<std::string>& words) {
    const Outcome outcome = data.run(words);
    INFO(outcome.errors);
    REQUIRE(outcome.exit_code == 0);
  };
  succeeds({"speedo", "train", "-solver", data.place.file("solver.prototxt")});
  succeeds({"speedo", "export", "--format", "safetensors", "--model", model, "--weights",
            data.place.file("snap_iter_6.caffemodel"), "--output", weights});
  succeeds({"speedo", "import", "--model", model, "--weights", weights, "--output",
            data.place.file("here.caffemodel")});
  succeeds({"speedo", "import", "--model", server.uri("net.prototxt"), "--weights",
            server.uri("w.safetensors"), "--output", data.place.file("there.caffemodel")});
  CHECK((data.place.read("here.caffemodel") == data.place.read("there.caffemodel")));
}

TEST_CASE("Workers of a cluster fetch a file once for all of them") {
  ServedData data;
  const RemoteServer& server = data.server;
  data.train(ServedData::data_layer(server.uri("digits_lmdb"), "LMDB"));
  const std::string map =
      data.place.write("map.txt", "worker0 " + server.uri("digits_leveldb") + "\n* " +
                                      server.uri("digits_leveldb") + "\n");
  data.place.write("net.prototxt", std::regex_replace(data.place.read("net.prototxt"),
                                                      std::regex("digits_lmdb\" backend: LMDB"),
                                                      "digits_leveldb\" backend: LEVELDB"));
  const int before = server.gets();
  const Outcome trained = data.run({"speedo", "run", "-solver", data.place.file("solver.prototxt"),
                                    "--workers", "2", "--sync", "--data-map", map, "--shard",
                                    "offset", "--data-cache", data.place.file("cache/here")});
  INFO(trained.errors);
  CHECK(trained.exit_code == 0);
  const int gets = server.gets() - before;
  CHECK(gets == 3);  // CURRENT, MANIFEST and the log, for the master and both workers
  CHECK(fs::exists(data.place.file("cache/here/files")));
  CHECK(!data.weights().empty());
}

TEST_CASE("An image of a list on a server is the one of that very name") {
  ServedData data;
  const RemoteServer& server = data.server;
  const auto image = [](int side) {
    const std::string sides = std::to_string(side);
    return "P5 " + sides + " " + sides + " 255\n" +
           std::string(static_cast<std::size_t>(side * side), 'x');
  };
  server.put("a", image(2));
  server.put("a b", image(2));
  const auto shape_of = [&](const std::string& name, const std::string& fields) {
    server.put("list", name + " 1\n");
    data.place.write("net.prototxt",
                     "layer { name: 'data' type: 'ImageData' top: 'data' top: 'label' "
                     "image_data_param { source: '" + server.uri("list") +
                         "' batch_size: 1 is_color: false " + fields + " } }");
    const Outcome shown = data.run({"speedo", "net", "--model", data.place.file("net.prototxt")});
    INFO(name << "\n" << shown.errors);
    REQUIRE(shown.exit_code == 0);
    return shown.output;
  };
  for (const std::string name : {"a#1.pgm", "a?1.pgm", "a%20b", "a b#?%23.pgm"}) {
    server.put(name, image(5));
    server.put("of#1/" + name, image(7));
    CHECK(shape_of(name, "").find("1 1 5 5 (25)") != std::string::npos);
    CHECK(shape_of(name, "root_folder: 'of#1/'").find("1 1 7 7 (49)") != std::string::npos);
    CHECK(shape_of(server.uri("a"), "root_folder: 'of#1/'").find("1 1 2 2 (4)") !=
          std::string::npos);
  }
}

TEST_CASE("What cannot be fetched ends a command with a name and an exit code") {
  ServedData data;
  const RemoteServer& server = data.server;
  struct Case {
    std::string source;
    int exit_code;
    const char* says;
  };
  const std::vector<Case> cases = {
      {server.uri("no_lmdb"), 65, "does not exist"},
      {server.uri("range/digits_lmdb"), 65, "were asked for"},
      {server.uri("status=403/digits_lmdb"), 77, "may not be read"},
      {server.uri("digits_lmdb.tar"), 64, "archive"},
      {"http://ann:geheim@" + server.address() + "/digits_lmdb", 2, "netrc"},
      {"ftp://host/digits_lmdb", 64, "http, https, s3 and hdfs"},
  };
  for (const Case& each : cases) {
    data.place.write("net.prototxt", ServedData::data_layer(each.source, "LMDB"));
    const Outcome shown = data.run({"speedo", "net", "--model", data.place.file("net.prototxt")});
    INFO(each.source << "\n" << shown.errors);
    CHECK(shown.exit_code == each.exit_code);
    CHECK(shown.error_line().find(each.says) != std::string::npos);
    CHECK(shown.errors.find("geheim") == std::string::npos);
  }
}

TEST_CASE("What is wrong with a copy is told with where it came from") {
  ServedData data;
  data.server.put("empty.txt", "");
  data.server.put("bad.prototxt", "layer { nome: 1 }\n");
  const std::string list = data.server.uri("empty.txt"), net = data.server.uri("bad.prototxt");
  data.place.write("net.prototxt", ServedData::hdf5_layer(list));
  const Outcome with_list = data.run({"speedo", "net", "--model", data.place.file("net.prototxt")});
  CHECK(with_list.exit_code != 0);
  CHECK(with_list.error_line().find("it came from '" + list) != std::string::npos);
  const Outcome with_net = data.run({"speedo", "net", "--model", net});
  CHECK(with_net.exit_code == 64);
  CHECK(with_net.error_line().find("it came from '" + net) != std::string::npos);
}

}  // namespace
}  // namespace speedo::test
