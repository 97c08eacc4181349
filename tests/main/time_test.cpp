#include "main/command_support.hpp"
#include "support/skip.hpp"

namespace speedo::test {
namespace {

// Noise in, a label that never changes: a net that needs no files.
std::string write_images(Context& place) {
  return place.write("images.prototxt", R"(name: "images"
    layer { name: "data" type: "Input" top: "data"
            input_param { shape { dim: 4 dim: 3 dim: 9 dim: 9 } } }
    layer { name: "label" type: "DummyData" top: "label"
            dummy_data_param { shape { dim: 4 } data_filler { type: "constant" value: 1 } } }
    layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
            convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
    layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
            pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1"
            inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip1" bottom: "label" top: "loss" })");
}

nlohmann::json find_layer(const nlohmann::json& result, const std::string& name) {
  for (const auto& layer : result["layers"]) {
    if (layer["name"] == name) return layer;
  }
  FAIL("no layer " << name);
  return {};
}

TEST_CASE("speedo time --training-steps: whole steps, rates, kernels and layouts") {
  Context place;
  const std::string model = write_images(place);
  const Outcome outcome = place.run(
      {"speedo", "time", "--training-steps", "--model", model, "--iterations", "5", "--json"});
  REQUIRE(outcome.exit_code == 0);
  const auto result = outcome.json();
  CHECK(result["net"] == "images");
  CHECK(result["train"] == true);
  CHECK(result["iterations"] == 5);
  CHECK(result["images"] == 4);
  CHECK(result["update_ms"].get<double>() > 0.0);
  CHECK(result["step_ms"].get<double>() >= result["forward_ms"].get<double>());
  CHECK(result["images_per_second"].get<double>() ==
        Approx(4e3 / result["step_ms"].get<double>()));
  CHECK(result["sgemm_gflops"].get<double>() > 0.0);
  CHECK(result["share_of_sgemm"].get<double>() > 0.0);
  CHECK(result["peak_memory_bytes"].get<std::int64_t>() > 1 << 20);
  const auto convolution = find_layer(result, "conv1");
  CHECK_FALSE(convolution["kernel"].get<std::string>().empty());
  CHECK_FALSE(convolution["layout"].get<std::string>().empty());
  CHECK(convolution["forward_gflops"].get<double>() > 0.0);
  CHECK(convolution["backward_share"].get<double>() > 0.0);
}

TEST_CASE("speedo time counts no gradient of weights that nothing trains") {
  Context place;
  const auto convolution = [](const std::string& name, const std::string& bottom,
                              const std::string& rate) {
    return "layer { name: '" + name + "' type: 'Convolution' bottom: '" + bottom + "' top: '" +
           name + "' param { lr_mult: " + rate + " } param { lr_mult: 1 } " +
           "convolution_param { num_output: 16 kernel_size: 3 pad: 1 " +
           "weight_filler { type: 'xavier' } } }\n";
  };
  const std::string model =
      place.write("frozen.prototxt",
                  "layer { name: 'data' type: 'Input' top: 'data' "
                  "input_param { shape { dim: 4 dim: 16 dim: 24 dim: 24 } } }\n"
                  "layer { name: 'label' type: 'DummyData' top: 'label' "
                  "dummy_data_param { shape { dim: 4 } data_filler { type: 'constant' } } }\n" +
                      convolution("first", "data", "1") + convolution("trained", "first", "1") +
                      convolution("frozen", "trained", "0") +
                      "layer { name: 'ip' type: 'InnerProduct' bottom: 'frozen' top: 'ip' "
                      "inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }\n"
                      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' "
                      "top: 'loss' }");
  const Outcome outcome =
      place.run({"speedo", "time", "--model", model, "--iterations", "3", "--json"});
  REQUIRE(outcome.exit_code == 0);
  const auto result = outcome.json();
  const auto operations = [&](const std::string& name, const std::string& pass) {
    const auto layer = find_layer(result, name);
    return layer[pass + "_gflops"].get<double>() * layer[pass + "_ms"].get<double>();
  };
  CHECK(operations("trained", "backward") == Approx(2.0 * operations("trained", "forward")));
  CHECK(operations("frozen", "backward") == Approx(operations("frozen", "forward")));
  CHECK(operations("first", "backward") == Approx(operations("first", "forward")));
}

TEST_CASE("speedo time prints a table with totals, and without --train no update") {
  Context place;
  const Outcome outcome =
      place.run({"speedo", "time", "--model", write_images(place), "--iterations", "2"});
  REQUIRE(outcome.exit_code == 0);
  for (const char* part : {"conv1", "Pooling", "GFLOP/s", "of sgemm (", "reorders ",
                           "waited for data 0.000 ms", "peak memory "}) {
    INFO(part);
    CHECK(outcome.output.find(part) != std::string::npos);
  }
  CHECK(outcome.output.find("update") == std::string::npos);
  // The log has the layers of the net, and what was inserted between them as one.
  const bool has_reorders = outcome.output.find("_reorder ") != std::string::npos;
  CHECK(outcome.errors.find("_reorder") == std::string::npos);
  CHECK((outcome.errors.find("(inserted)\tforward: ") != std::string::npos) == has_reorders);
}

TEST_CASE("speedo time --solver: the solver's net, rule and iter_size") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 40 iter_size: 3");
  const auto result =
      place.run({"speedo", "time", "-solver", solver, "-iterations", "2", "--json"}).json();
  CHECK(result["net"] == "noise");
  CHECK(result["train"] == true);
  CHECK(result["images"] == 3 * 8);
  const std::string other = write_images(place);
  const auto with_model = place.run({"speedo", "time", "-solver", solver, "-model", other,
                                     "-iterations", "2", "--json"});
  CHECK(with_model.json()["net"] == "images");
  const std::string adam = place.write_solver("max_iter: 40 type: \"Adam\"", "adam.prototxt");
  const auto with_adam =
      place.run({"speedo", "time", "-solver", adam, "-iterations", "2", "--json"}).json();
  CHECK(with_adam["update_ms"].get<double>() > 0.0);
}

TEST_CASE("speedo net shows the net as it was written, without the reorders of its layouts") {
  Context place;
  const std::string model = write_images(place);
  const auto timed =
      place.run({"speedo", "time", "--model", model, "--iterations", "1", "--json"}).json();
  std::string reorder;
  for (const auto& layer : timed["layers"]) {
    if (layer["reorder"] == true) reorder = layer["name"];
  }
  if (reorder.empty()) SPEEDO_SKIP("the layouts of this machine's kernels need no reorder");
  const std::string shown = place.run({"speedo", "net", "-model", model}).output;
  CHECK(shown.find("pool1") != std::string::npos);
  CHECK(shown.find(reorder) == std::string::npos);
}

TEST_CASE("speedo time refuses what makes no sense") {
  Context place;
  const Outcome nothing = place.run({"speedo", "time"});
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.error_line().find("--model") != std::string::npos);
  const Outcome test_phase =
      place.run({"speedo", "time", "--train", "--model", place.write_net(), "--phase", "TEST"});
  CHECK(test_phase.exit_code == 2);
  CHECK(test_phase.error_line().find("TRAIN") != std::string::npos);
  CHECK(place.run({"speedo", "time", "--model", place.write_net(), "--iterations", "0"})
            .exit_code == 2);
  CHECK(place.run({"speedo", "time", "--solver", place.file("none.prototxt")}).exit_code == 64);
  CHECK(place.run({"speedo", "time", "--train", "--model", place.file("none.prototxt")})
            .exit_code == 64);
}

}  // namespace
}  // namespace speedo::test
