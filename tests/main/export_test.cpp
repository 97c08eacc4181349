// `speedo export` and `speedo import`, end to end.

#include <filesystem>

#include "core/blob_proto.hpp"
#include "core/prototxt.hpp"
#include "core/weight_file.hpp"
#include "data/model_files.hpp"
#include "formats/safetensors_file.hpp"
#include "main/command_support.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

// A net that was trained for a few iterations, in the context's folder.
struct Trained {
  Context place;
  std::string model, weights;

  Trained() {
    const std::string solver = place.write_solver("max_iter: 4");
    REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
    model = place.file("net.prototxt");
    weights = place.file("snap_iter_4.caffemodel");
  }

  std::vector<std::string> line(const std::string& format, const std::string& output) const {
    return {"speedo", "export",    "--format", format,     "--model",
            model,    "--weights", weights,    "--output", place.file(output)};
  }
  Outcome run(std::vector<std::string> command) {
    Outcome outcome = place.run(std::move(command));
    INFO(outcome.errors);
    REQUIRE(outcome.exit_code == 0);
    return outcome;
  }
};

TEST_CASE("export: a deployed net that is read again, with its weights beside it") {
  Trained net;
  std::vector<std::string> line = net.line("deploy", "deploy.prototxt");
  line.insert(line.end(), {"--batch", "3"});
  const std::string told = net.run(line).errors;
  CHECK(told.find("Input data: 3 12 (36)") != std::string::npos);
  CHECK(told.find("Output prob: 3 4 (12)") != std::string::npos);
  const auto deployed = read_net_prototxt(net.place.file("deploy.prototxt"));
  REQUIRE(deployed.has_value());
  CHECK(deployed->layer_size() == 5);
  const auto weights = read_caffemodel(net.place.file("deploy.caffemodel"));
  const auto trained = read_caffemodel(net.weights);
  REQUIRE(weights.has_value());
  REQUIRE(trained.has_value());
  CHECK(weights->layer(1).name() == "ip1");
  for (const caffe::LayerParameter& layer : trained->layer()) {
    if (layer.name() != "ip1") continue;
    CHECK(layer.blobs(0).data(0) == weights->layer(1).blobs(0).data(0));
  }
  const Outcome shown = net.place.run(
      {"speedo", "net", "--model", net.place.file("deploy.prototxt"), "--phase", "TEST", "--json"});
  CHECK(shown.json()["blobs"]["prob"] == std::vector<int>{3, 4});
}

TEST_CASE("export and import: safetensors, HDF5 and back") {
  Trained net;
  net.run(net.line("safetensors", "net.safetensors"));
  const auto file = SafetensorsFile::open(net.place.file("net.safetensors"));
  if (!file) FAIL(file.error().message);
  CHECK(file->metadata().at("net") == "noise");
  CHECK(file->metadata().at("iteration") == "4");
  CHECK(file->tensors().size() == 4);

  const std::string back = net.place.file("back.caffemodel");
  net.run({"speedo", "import", "--model", net.model, "--weights", net.place.file("net.safetensors"),
           "--output", back});
  net.run({"speedo", "export", "--format", "h5", "--weights", back, "--output",
           net.place.file("back.h5")});
  const auto last = read_model(net.place.file("back.h5"));
  REQUIRE(last.has_value());
  net.run({"speedo", "export", "--format", "safetensors", "--model", net.model, "--weights",
           net.place.file("back.h5"), "--output", net.place.file("again.safetensors")});
  const auto again = SafetensorsFile::open(net.place.file("again.safetensors"));
  REQUIRE(again.has_value());
  REQUIRE(again->tensors().size() == file->tensors().size());
  for (std::size_t i = 0; i < file->tensors().size(); ++i) {
    const StoredTensor& tensor = file->tensors()[i];
    std::vector<float> first(static_cast<std::size_t>(tensor.shape.count())), second = first;
    CHECK(again->tensors()[i].name == tensor.name);
    REQUIRE(file->read(tensor, first));
    REQUIRE(again->read(again->tensors()[i], second));
    CHECK(first == second);
  }
}

TEST_CASE("export and import: weights of layers that are for training alone are kept") {
  Context place;
  place.write_solver("max_iter: 2");
  place.write("net.prototxt", place.read("net.prototxt") + R"(
      layer { name: "aux" type: "InnerProduct" bottom: "ip1" top: "aux" include { phase: TRAIN }
              inner_product_param { num_output: 4 } }
      layer { name: "aux_loss" type: "SoftmaxWithLoss" bottom: "aux" bottom: "label"
              top: "aux_loss" include { phase: TRAIN } }
      layer { name: "idle" type: "InnerProduct" bottom: "ip1" top: "idle"
              inner_product_param { num_output: 3 } }
      layer { name: "sink" type: "Silence" bottom: "idle" })");
  const std::string model = place.file("net.prototxt");
  const std::string weights = place.file("snap_iter_2.caffemodel");
  REQUIRE(place.run({"speedo", "train", "-solver", place.file("solver.prototxt")}).exit_code == 0);
  const auto tensors = [&](const std::vector<std::string>& more) {
    std::vector<std::string> line{
        "speedo", "export",    "--format", "safetensors", "--model",
        model,    "--weights", weights,    "--output",    place.file("out.safetensors")};
    line.insert(line.end(), more.begin(), more.end());
    const Outcome outcome = place.run(line);
    INFO(outcome.errors);
    REQUIRE(outcome.exit_code == 0);
    return SafetensorsFile::open(place.file("out.safetensors"))->tensors().size();
  };
  CHECK(tensors({"--outputs", "prob"}) == 4);
  CHECK(tensors({}) == 8);
  const Outcome back =
      place.run({"speedo", "import", "--model", model, "--weights", place.file("out.safetensors"),
                 "--output", place.file("back.caffemodel")});
  INFO(back.errors);
  REQUIRE(back.exit_code == 0);
  const auto values_in = [&](const std::string& file, const std::string& name) {
    const auto read = read_caffemodel(place.file(file));
    REQUIRE(read);
    std::vector<float> values;
    for (const caffe::LayerParameter& layer : read->layer()) {
      if (layer.name() != name) continue;
      for (const caffe::BlobProto& blob : layer.blobs()) {
        values.insert(values.end(), blob.data().begin(), blob.data().end());
      }
    }
    return values;
  };
  for (const std::string name : {"ip1", "ip2", "aux", "idle"}) {
    CHECK(values_in("back.caffemodel", name).size() > 10);
    CHECK(values_in("back.caffemodel", name) == values_in("snap_iter_2.caffemodel", name));
  }
}

TEST_CASE("import: what training would refuse of its own layers is not taken") {
  Context place;
  place.write_solver("max_iter: 2");
  place.write("net.prototxt", place.read("net.prototxt") + R"(
      layer { name: "aux" type: "InnerProduct" bottom: "ip1" top: "aux" include { phase: TRAIN }
              param { name: "w" } inner_product_param { num_output: 4 } }
      layer { name: "twin" type: "InnerProduct" bottom: "ip1" top: "twin" param { name: "w" }
              inner_product_param { num_output: 4 } }
      layer { name: "aux_loss" type: "SoftmaxWithLoss" bottom: "aux" bottom: "label"
              top: "aux_loss" include { phase: TRAIN } })");
  REQUIRE(place.run({"speedo", "train", "-solver", place.file("solver.prototxt")}).exit_code == 0);
  // Imports what was trained, after `change` was done to its layer.
  const auto import = [&](const std::string& name, auto change) {
    auto model = read_caffemodel(place.file("snap_iter_2.caffemodel"));
    REQUIRE(model);
    for (caffe::LayerParameter& layer : *model->mutable_layer()) {
      if (layer.name() == name) change(layer);
    }
    REQUIRE(write_safetensors(place.file("changed.safetensors"), *model, {}));
    return place.run({"speedo", "import", "--model", place.file("net.prototxt"), "--weights",
                      place.file("changed.safetensors"), "--output", place.file("out.caffemodel")});
  };
  const auto refused = [&](const Outcome& outcome, const std::string& why) {
    INFO(outcome.errors);
    CHECK(outcome.exit_code == 78);
    CHECK(outcome.error_line().find(why) != std::string::npos);
    CHECK_FALSE(fs::exists(place.file("out.caffemodel")));
  };
  using Layer = caffe::LayerParameter;
  refused(import("twin", [](Layer& layer) { layer.mutable_blobs(0)->set_data(0, 9.0F); }),
          "are one parameter, 'w'");
  refused(import("aux", [](Layer& layer) { layer.mutable_blobs()->RemoveLast(); }),
          "it lacks aux.bias; without the rest of their layers it cannot take aux.weight");
  refused(import("aux", [](Layer& layer) { *layer.add_blobs() = layer.blobs(1); }),
          "the net has no aux.2");
  refused(
      import("aux_loss", [](Layer& layer) { set_shape_and_data(Shape{1}, *layer.add_blobs()); }),
      "the net has no aux_loss.0");
  const Outcome whole = import("aux", [](Layer&) {});
  INFO(whole.errors);
  CHECK(whole.exit_code == 0);
}

TEST_CASE("import: what does not fit is named, and nothing is written") {
  Trained net;
  net.run(net.line("safetensors", "net.safetensors"));
  const std::string other = net.place.write_net("other.prototxt", 7);
  std::vector<std::string> line{"speedo",    "import",
                                "--model",   other,
                                "--weights", net.place.file("net.safetensors"),
                                "--output",  net.place.file("out.caffemodel")};
  const Outcome shape = net.place.run(line);
  CHECK(shape.exit_code == 78);
  CHECK(shape.error_line().find("tensor 'ip1.weight' has the shape 16 12 (192), layer 'ip1'") !=
        std::string::npos);
  line[3] = net.place.write("more.prototxt", net.place.read("net.prototxt") + R"(
      layer { name: "more" type: "InnerProduct" bottom: "ip1" top: "more"
              inner_product_param { num_output: 2 } })");
  const Outcome missing = net.place.run(line);
  CHECK(missing.exit_code == 78);
  CHECK(missing.error_line().find("it lacks more.weight, more.bias; --partial") !=
        std::string::npos);
  CHECK_FALSE(fs::exists(net.place.file("out.caffemodel")));
  line.emplace_back("--partial");
  CHECK(net.place.run(line).exit_code == 0);
  line[5] = net.place.write("bad.safetensors", "no tensors");
  const Outcome bad = net.place.run(line);
  CHECK(bad.exit_code == 65);
  CHECK(bad.error_line().find("bad.safetensors: is no safetensors file") != std::string::npos);
}

TEST_CASE("export: flags that contradict, and nets that cannot be said") {
  Trained net;
  CHECK(net.place
            .run({"speedo", "export", "--format", "onnx", "--weights", net.weights, "--output",
                  net.place.file("a.onnx")})
            .error_line()
            .find("needs --model") != std::string::npos);
  CHECK(net.place
            .run({"speedo", "export", "--format", "onnx", "--model", net.model, "--output",
                  net.place.file("a.onnx")})
            .exit_code == 2);
  std::vector<std::string> line = net.line("onnx", "a.onnx");
  line.insert(line.end(), {"--shape", "3,0"});
  CHECK(net.place.run(line).exit_code == 2);
  line.back() = "nothing=3,12";
  CHECK(net.place.run(line).error_line().find("the net has no input 'nothing'") !=
        std::string::npos);
  for (const char* twice : {"data=3,12;data=5,12", "3,12;data=5,12"}) {
    line.back() = twice;
    const Outcome refused = net.place.run(line);
    CHECK(refused.exit_code == 2);
    CHECK(refused.error_line().find("input 'data' has two shapes") != std::string::npos);
  }
  line.back() = "5,12";
  CHECK(net.place.run(line).exit_code == 0);
  CHECK(fs::file_size(net.place.file("a.onnx")) > 1000);
  line.insert(line.end(), {"--outputs", "pr0b"});
  const Outcome wrong = net.place.run(line);
  CHECK(wrong.exit_code == 64);
  CHECK(wrong.error_line().find("did you mean 'prob'?") != std::string::npos);
}

TEST_CASE("export: what is exported is not replaced") {
  Trained net;
  const std::string before = net.place.read("snap_iter_4.caffemodel");
  const auto fails = [&](const std::string& format, const std::string& output) {
    INFO(format << " " << output);
    const Outcome outcome = net.place.run(net.line(format, output));
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.error_line().find("would replace") != std::string::npos);
  };
  fails("deploy", "snap_iter_4.prototxt");
  fails("deploy", "./net.prototxt");
  fails("h5", "snap_iter_4.caffemodel");
  CHECK(net.place.read("snap_iter_4.caffemodel") == before);
}

TEST_CASE("import: what is imported, and the net that it is for, are not replaced") {
  Trained net;
  net.run(net.line("safetensors", "net.safetensors"));
  for (const std::string name : {"net.prototxt", "net.safetensors"}) {
    INFO(name);
    const std::string before = net.place.read(name);
    const Outcome outcome =
        net.place.run({"speedo", "import", "--model", net.model, "--weights",
                       net.place.file("net.safetensors"), "--output", net.place.file("./" + name)});
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.error_line().find("would replace") != std::string::npos);
    CHECK(net.place.read(name) == before);
  }
}

TEST_CASE("export: an Input layer without a shape takes the one that is given") {
  Context place;
  const std::string model = place.write("net.prototxt", R"(
      layer { name: "data" type: "Input" top: "data" }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
              inner_product_param { num_output: 2 } })");
  CHECK(place.run({"speedo", "export", "--format", "deploy", "--model", model, "--output",
                   place.file("deploy.prototxt"), "--shape", "1,3,4,4"})
            .exit_code == 0);
  CHECK(place.read("deploy.prototxt").find("dim: 4") != std::string::npos);
}

TEST_CASE("export: with a shape the data need not be there") {
  Context place;
  const std::string model = place.write("net.prototxt", R"(
      layer { name: "data" type: "Data" top: "data" top: "label" data_param { source: "gone" } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
              inner_product_param { num_output: 2 } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })");
  std::vector<std::string> line{"speedo",  "export", "--format", "deploy",
                                "--model", model,    "--output", place.file("deploy.prototxt")};
  const Outcome without = place.run(line);
  CHECK(without.exit_code != 0);
  CHECK(without.error_line().find("with --shape the data need not be there") != std::string::npos);
  line.insert(line.end(), {"--shape", "1,3,4,4"});
  CHECK(place.run(line).exit_code == 0);
  CHECK(place.read("deploy.prototxt").find("dim: 4") != std::string::npos);
}

}  // namespace
}  // namespace speedo::test
