// Nets that Caffe's prototxt can spell and hardly anyone means: each runs, or is refused in a line.

#include <set>

#include <speedo/backend/backend.hpp>

#include "core/layers/registry.hpp"
#include "net_run.hpp"
#include "net_support.hpp"
#include "support/kernels.hpp"

namespace speedo {
namespace {

std::string loss_without_top(const std::string& name, const std::string& type = "EuclideanLoss") {
  return "layer { name: '" + name + "' type: '" + type + "' bottom: 'x' bottom: 'y' }\n";
}

TEST_CASE("a loss without a top counts, and its blob is found by its name") {
  const std::string start = input("data", "dim: 2 dim: 3") + product("x", "data");
  const std::string net_text = start + input("y", "dim: 2 dim: 3");
  const std::string named = net_text +
                            "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'x' "
                            "bottom: 'y' top: 'loss' }\n";
  const bool keep_blobs = GENERATE(false, true);
  NetOptions options;
  options.keep_blobs = keep_blobs;
  const NetRun with_top = run_net(named, test_backend(), options);
  const NetRun without = run_net(net_text + loss_without_top("loss"), test_backend(), options);
  CHECK(without.losses == with_top.losses);
  CHECK(without.parameter_gradients == with_top.parameter_gradients);
  const auto net = make_net(net_text + loss_without_top("loss"));
  for (const std::string& name : net->blob_names()) {
    INFO(name);
    REQUIRE(net->blob(name) != nullptr);
  }
  CHECK(net->output_names().empty());
}

TEST_CASE("losses without tops are told apart") {
  const std::string text = input("data", "dim: 2 dim: 3") + product("x", "data") +
                           input("y", "dim: 2 dim: 3") + loss_without_top("first") +
                           loss_without_top("second");
  const auto net = make_net(text);
  std::set<const Tensor*> blobs;
  for (const std::string& name : net->blob_names()) blobs.insert(net->blob(name));
  CHECK(blobs.count(nullptr) == 0);
  CHECK(blobs.size() == net->blob_names().size());
}

TEST_CASE("a planned net refuses the fillers that a net for training refuses") {
  const std::string filler =
      GENERATE("type: 'gausian'", "type: ''", "type: 'gaussian' std: -1",
               "type: 'uniform' min: 2 max: 1", "type: 'bilinear'", "type: 'xavier' sparse: 2");
  const std::string text = input("data", "dim: 2 dim: 3") +
                           "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' "
                           "inner_product_param { num_output: 4 weight_filler { " +
                           filler + " } } }\n";
  NetOptions options = net_options(GENERATE(Phase::kTrain, Phase::kTest));
  options.plan_only = GENERATE(false, true);
  const Error error = net_error(text, options);
  CHECK(error.code == ErrorCode::kConfig);
  CHECK(error.message.find("layer 'ip' (InnerProduct): parameter 0: ") == 0);
  CHECK(error.message.find("filler '") != std::string::npos);
}

// Options that a type needs.
std::string options_of(const std::string& type) {
  if (type == "Convolution") return "convolution_param { num_output: 2 kernel_size: 1 }";
  if (type == "InnerProduct") return "inner_product_param { num_output: 2 }";
  if (type == "Pooling") return "pooling_param { kernel_size: 1 }";
  if (type == "SPP") return "spp_param { pyramid_height: 1 }";
  if (type == "Reshape") return "reshape_param { shape { dim: 0 dim: 0 dim: 0 dim: 0 } }";
  return "";
}

// The type on an array without elements: alone, with a twin, with labels.
std::vector<std::string> nets_around(const std::string& type, const std::string& dims) {
  const std::string start = input("data", dims) + input("other", dims) + input("label", "dim: 2");
  const auto net_with = [&](const std::vector<std::string>& bottoms) {
    return start + layer("it", type, bottoms, options_of(type));
  };
  return {net_with({}), net_with({"data"}), net_with({"data", "other"}),
          net_with({"data", "label"})};
}

TEST_CASE("every layer takes an array without elements, or refuses it in a line") {
  const std::string dims = GENERATE("dim: 0 dim: 3 dim: 8 dim: 8", "dim: 2 dim: 0 dim: 8 dim: 8",
                                    "dim: 2 dim: 3 dim: 0 dim: 8", "dim: 2 dim: 3 dim: 8 dim: 0",
                                    "dim: 0", "dim: 2 dim: 0");
  for (const std::string_view type : layer_types()) {
    for (const std::string& text : nets_around(std::string(type), dims)) {
      INFO(text);
      NetOptions options = net_options();
      options.keep_blobs = true;
      const auto made = Net::create(net_message("force_backward: true\n" + text), options);
      if (!made) {
        CHECK(made.error().message.find('\n') == std::string::npos);
        CHECK(made.error().message.find("layer 'it' (" + std::string(type) + "): ") == 0);
        continue;
      }
      if ((*made)->forward().has_value()) (*made)->backward();
      CHECK((*made)->reshape().has_value());
    }
  }
}

TEST_CASE("channels that are none have no parameters") {
  const std::string type = GENERATE("PReLU", "Scale", "Bias", "Convolution", "InnerProduct");
  const Error error = net_error(input("data", "dim: 2 dim: 0 dim: 8 dim: 8") +
                                layer("it", type, {"data"}, options_of(type)));
  CHECK(error.code == ErrorCode::kConfig);
  CHECK(error.message.find("2 0 8 8 (0)") != std::string::npos);
}

std::string far_convolution(const std::string& options) {
  return input("data", "dim: 1 dim: 1 dim: 4 dim: 4") +
         layer("it", "Convolution", {"data"},
               "convolution_param { num_output: 2 " + options + " }");
}

TEST_CASE("padding and dilation that cannot be meant are refused with their limit") {
  const std::string reach = GENERATE("65536", "1000000000", "4294967295");
  for (const std::string& options :
       {"kernel_size: 1 pad: " + reach, "kernel_size: 3 pad: " + reach + " dilation: " + reach,
        "kernel_h: 3 kernel_w: 3 pad_h: 1 pad_w: " + reach}) {
    const Error error = net_error(far_convolution(options));
    CHECK(error.code == ErrorCode::kConfig);
    CHECK(error.message.find("is " + reach + ", it must be 0 to 65535") != std::string::npos);
  }
  const Error pooling = net_error(
      input("data", "dim: 1 dim: 1 dim: 4 dim: 4") +
      layer("it", "Pooling", {"data"}, "pooling_param { kernel_size: 70000 pad: 65536 }"));
  CHECK(pooling.message.find("pad is 65536 x 65536, it must be at most 65535") !=
        std::string::npos);
}

TEST_CASE("padding and dilation up to their limit are taken") {
  NetOptions options;
  run_net(far_convolution("kernel_size: 3 pad: 65535 dilation: 65535"), test_backend(), options, 1);
}

TEST_CASE(
    "memory that operations lack is an error when a net is made, and none when it is planned") {
  const std::string text =
      input("data", "dim: 1 dim: 1 dim: 1 dim: 1 dim: 4000 dim: 4000") +
      layer("it", "Convolution", {"data"},
            "convolution_param { num_output: 1 kernel_size: 1 kernel_size: 1 kernel_size: 2000 "
            "kernel_size: 2000 }");
  const auto backend = test::make_backend(1);  // its own, as what was asked for stays counted
  NetOptions options = net_options();
  options.backend = backend.get();
  options.plan_only = true;
  CHECK(make_net(text, options)->memory().scratch_bytes > (std::int64_t{1} << 43U));
  options.plan_only = false;
  const Error error = net_error(text, options);
  CHECK(error.code == ErrorCode::kFull);
}

TEST_CASE("normalization over windows of any size runs") {
  const std::string size = GENERATE("1001", "2147483647", "4294967295");
  const std::string region = GENERATE("WITHIN_CHANNEL", "ACROSS_CHANNELS");
  NetOptions options;
  run_net("force_backward: true\n" + input("data", "dim: 2 dim: 3 dim: 5 dim: 4") +
              layer("it", "LRN", {"data"},
                    "lrn_param { norm_region: " + region + " local_size: " + size + " }"),
          test_backend(), options);
}

// They need what they gave for their own backward pass.
TEST_CASE("a recurrent layer's gradients are the same whether a layer behind it works in place") {
  const std::string type = GENERATE(as<std::string>(), "RNN", "LSTM");
  const std::string behind = GENERATE(as<std::string>(), "ReLU", "Sigmoid", "Scale", "Dropout");
  CAPTURE(type, behind);
  const auto run = [&](const std::string& top) {
    const std::string text =
        input("x", "dim: 3 dim: 2 dim: 4") + input("cont", "dim: 3 dim: 2") +
        "layer { name: 'r' type: '" + type + "' bottom: 'x' bottom: 'cont' top: 'r' " +
        "recurrent_param { num_output: 3 weight_filler { type: 'xavier' } } }\n" +
        "layer { name: 'behind' type: '" + behind + "' bottom: 'r' top: '" + top + "' }\n" +
        input("y", "dim: 3 dim: 2 dim: 3") +
        "layer { name: 'loss' type: 'EuclideanLoss' bottom: '" + top + "' bottom: 'y' }\n";
    return run_net(text, test_backend(), net_options(Phase::kTrain), 1);
  };
  const NetRun beside = run("a"), in_place = run("r");
  CHECK(beside.losses == in_place.losses);
  check_close("parameters' gradients", beside.parameter_gradients, in_place.parameter_gradients);
}

// What lies behind works on the memory of the layer before the view.
TEST_CASE("a kept top's gradients are the same whether a layer works in place on a view of it") {
  const std::string kept = GENERATE(as<std::string>(),
                                    "type: 'RNN' bottom: 'cont' recurrent_param { num_output: 3"
                                    " weight_filler { type: 'xavier' } }",
                                    "type: 'LSTM' bottom: 'cont' recurrent_param { num_output: 3"
                                    " weight_filler { type: 'xavier' } }",
                                    "type: 'ReLU'", "type: 'ELU'");
  const std::string view =
      GENERATE(as<std::string>(), "layer { name: 'v' type: 'Flatten' bottom: 'r' top: 'v' }\n",
               "layer { name: 'w' type: 'Reshape' bottom: 'r' top: 'w' reshape_param { shape {"
               " dim: 0 dim: 0 dim: -1 dim: 1 } } }\n"
               "layer { name: 'v' type: 'Flatten' bottom: 'w' top: 'v' }\n");
  const std::string behind = GENERATE(as<std::string>(), "type: 'Sigmoid'",
                                      "type: 'Bias' bias_param { filler { value: -0.7 } }");
  CAPTURE(kept, view, behind);
  const auto run = [&](const std::string& top) {
    const std::string text =
        input("x", "dim: 3 dim: 2 dim: 4") + input("cont", "dim: 3 dim: 2") +
        "layer { name: 'scale' type: 'Scale' bottom: 'x' top: 's' }\n" +
        "layer { name: 'r' bottom: 's' top: 'r' " + kept + " }\n" + view +
        "layer { name: 'behind' bottom: 'v' top: '" + top + "' " + behind + " }\n" +
        "layer { name: 'loss' type: 'Reduction' bottom: '" + top +
        "' top: 'loss' loss_weight: 1 reduction_param { operation: SUMSQ } }\n" +
        "layer { name: 'rest' type: 'Silence' bottom: 'cont' }\n";
    return run_net(text, test_backend(), net_options(Phase::kTrain), 1);
  };
  const NetRun beside = run("b"), in_place = run("v");
  CHECK(beside.losses == in_place.losses);
  check_close("parameters' gradients", beside.parameter_gradients, in_place.parameter_gradients);
}

// So do those that tell by the sign of what they gave how steep they are, where it is not in place.
TEST_CASE("an activation beside has one gradient whether a layer behind it works in place") {
  const std::string activation = GENERATE(
      as<std::string>(), "type: 'ReLU'", "type: 'ReLU' relu_param { negative_slope: 0.1 }",
      "type: 'ELU'", "type: 'ELU' elu_param { alpha: 0.3 }", "type: 'ELU' elu_param { alpha: -2 }");
  const std::string behind = GENERATE(
      as<std::string>(), "type: 'Bias' bias_param { filler { value: 0.7 } }",
      "type: 'Bias' bias_param { filler { value: -0.7 } }", "type: 'Exp'", "type: 'Sigmoid'",
      "type: 'Softmax'", "type: 'Power' power_param { scale: -2 shift: 0.5 }", "type: 'Dropout'",
      "type: 'MVN' mvn_param { normalize_variance: false }", "type: 'ReLU'", "type: 'Scale'");
  CAPTURE(activation, behind);
  const auto run = [&](const std::string& top) {
    const std::string text =
        input("x", "dim: 3 dim: 4 dim: 3 dim: 2") + input("y", "dim: 3 dim: 4 dim: 3 dim: 2") +
        "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param {"
        " num_output: 4 kernel_size: 1 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'a' bottom: 'c' top: 'a' " +
        activation + " }\n" + "layer { name: 'behind' bottom: 'a' top: '" + top + "' " + behind +
        " }\n" + "layer { name: 'loss' type: 'EuclideanLoss' bottom: '" + top + "' bottom: 'y' }\n";
    return run_net(text, test_backend(), net_options(Phase::kTrain), 1);
  };
  const NetRun beside = run("b"), in_place = run("a");
  CHECK(beside.losses == in_place.losses);
  check_close("parameters' gradients", beside.parameter_gradients, in_place.parameter_gradients);
}

// An MVN that divides by the deviation gets memory of its own, whatever reads the blob before it.
TEST_CASE("a layer's gradient is the same whether an MVN with variance behind it works in place") {
  const auto [blob, before] = GENERATE(table<std::string, std::string>({
      {"a", "type: 'Sigmoid' bottom: 'c' top: 'a'"},
      {"a", "type: 'TanH' bottom: 'c' top: 'a'"},
      {"a", "type: 'Exp' bottom: 'c' top: 'a'"},
      {"a", "type: 'Softmax' bottom: 'c' top: 'a'"},
      {"a",
       "type: 'Eltwise' bottom: 'c' bottom: 'd' top: 'a'"
       " eltwise_param { operation: PROD stable_prod_grad: false }"},
      {"c", "type: 'ReLU' bottom: 'c' top: 'c' relu_param { negative_slope: 0.1 }"},
      {"c", "type: 'ELU' bottom: 'c' top: 'c'"},
      {"c", "type: 'TanH' bottom: 'c' top: 'c'"},
  }));
  CAPTURE(before);
  const auto run = [&, &blob = blob, &before = before](const std::string& top) {
    const std::string shape = "dim: 3 dim: 4 dim: 3 dim: 2";
    const std::string text =
        input("x", shape) + input("d", shape) + input("y", shape) +
        "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param {"
        " num_output: 4 kernel_size: 1 weight_filler { type: 'xavier' } } }\n"
        "layer { name: 'before' " +
        before + " }\nlayer { name: 'mvn' type: 'MVN' bottom: '" + blob + "' top: '" + top +
        "' }\nlayer { name: 'loss' type: 'EuclideanLoss' bottom: '" + top + "' bottom: 'y' }\n";
    return run_net(text, test_backend(), net_options(Phase::kTrain), 1);
  };
  const NetRun beside = run("b"), in_place = run(blob);
  CHECK(beside.losses == in_place.losses);
  check_close("parameters' gradients", beside.parameter_gradients, in_place.parameter_gradients);
}

}  // namespace
}  // namespace speedo
