// Nets with arrays of bfloat16 beside the same in float32, channels last too: on the GPU's double,
// and on a GPU where there is one.

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/random.hpp>
#include <speedo/core/net.hpp>
#include <speedo/gpu/gpu_backend.hpp>

#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/device_values.hpp"
#include "support/gpu/gpu_double.hpp"
#include "support/skip.hpp"

namespace speedo {
namespace {

std::string layer(const std::string& name, const std::string& type, const std::string& bottoms,
                  const std::string& top, const std::string& options = "") {
  return "layer { name: '" + name + "' type: '" + type + "' " + bottoms + " top: '" + top + "' " +
         options + " }\n";
}
std::string from(const std::string& name) { return "bottom: '" + name + "' "; }

std::string convolution(const std::string& name, const std::string& bottom,
                        const std::string& options) {
  return layer(name, "Convolution", from(bottom), name,
               "convolution_param { weight_filler { type: 'msra' } " + options + " }");
}
std::string in_place(const std::string& type, const std::string& blob,
                     const std::string& options = "") {
  return layer(blob + "/" + type, type, from(blob), blob, options);
}

const std::string kInputs =
    "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 3 dim: 3 dim: 12 "
    "dim: 11 } } }\n"
    "layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 3 } } }\n";

std::string classified(const std::string& bottom) {
  return layer("score", "InnerProduct", from(bottom), "score",
               "inner_product_param { num_output: 5 weight_filler { type: 'msra' } }") +
         layer("loss", "SoftmaxWithLoss", from("score") + from("label"), "loss");
}

// The most of each net's work makes channels by eights: others have no arrays of bfloat16.

// Groups, normalization, overlapping pools and dropout: AlexNet's parts.
std::string alex() {
  return kInputs + convolution("a", "data", "num_output: 8 kernel_size: 3 stride: 2") +
         in_place("ReLU", "a") +
         layer("n", "LRN", from("a"), "n", "lrn_param { local_size: 5 alpha: 0.01 }") +
         layer("p", "Pooling", from("n"), "p", "pooling_param { kernel_size: 3 stride: 2 }") +
         convolution("b", "p", "num_output: 12 kernel_size: 3 pad: 1 group: 2") +
         in_place("ReLU", "b") + in_place("Dropout", "b") + classified("b");
}

// Branches side by side, windows of one element, a mean at the end: GoogLeNet's parts.
std::string inception() {
  return kInputs + convolution("a", "data", "num_output: 8 kernel_size: 5 pad: 2") +
         in_place("ReLU", "a") + convolution("b1", "a", "num_output: 4 kernel_size: 1") +
         in_place("ReLU", "b1") + convolution("b3", "a", "num_output: 7 kernel_size: 3 pad: 1") +
         in_place("ReLU", "b3") +
         layer("bp", "Pooling", from("a"), "bp",
               "pooling_param { kernel_size: 3 stride: 1 pad: 1 }") +
         layer("all", "Concat", from("b1") + from("b3") + from("bp"), "all") +
         layer("mean", "Pooling", from("all"), "mean",
               "pooling_param { pool: AVE global_pooling: true }") +
         classified("mean");
}

// Batch normalization, sums with what was before: ResNet's parts.
std::string residual() {
  const auto normal = [](const std::string& blob) {
    return in_place("BatchNorm", blob) +
           in_place("Scale", blob, "scale_param { bias_term: true }");
  };
  const std::string bare = "bias_term: false ";
  return kInputs + convolution("a", "data", bare + "num_output: 8 kernel_size: 3 pad: 1") +
         normal("a") + in_place("ReLU", "a") +
         convolution("b", "a", bare + "num_output: 8 kernel_size: 1") + normal("b") +
         in_place("ReLU", "b") +
         convolution("c", "b", bare + "num_output: 8 kernel_size: 3 pad: 1") + normal("c") +
         layer("sum", "Eltwise", from("a") + from("c"), "sum") + in_place("ReLU", "sum") +
         layer("mean", "Pooling", from("sum"), "mean",
               "pooling_param { pool: AVE global_pooling: true }") +
         classified("mean");
}

// What keeps its bottom, a transposed convolution, and layers that know float32 alone between them.
std::string mixed() {
  return kInputs + convolution("a", "data", "num_output: 8 kernel_size: 5") +
         in_place("ELU", "a") + in_place("PReLU", "a") +
         layer("up", "Deconvolution", from("a"), "up",
               "convolution_param { num_output: 5 kernel_size: 2 stride: 2 weight_filler { type: "
               "'msra' } }") +
         in_place("Sigmoid", "up") + in_place("Scale", "up", "scale_param { bias_term: true }") +
         convolution("b", "up", "num_output: 4 kernel_size: 3 dilation: 2") +
         layer("halves", "Slice", from("b"), "x", "top: 'y' slice_param { slice_point: 1 }") +
         layer("back", "Concat", from("y") + from("x"), "z") + in_place("Bias", "z") +
         in_place("TanH", "z") + layer("square", "Eltwise", from("z") + from("b"), "square",
                                       "eltwise_param { operation: PROD }") +
         "layer { name: 'stop' type: 'Silence' bottom: 'up' }\n" + classified("square");
}

struct Outcome {
  float loss = 0.0F;
  std::vector<float> gradients;
  int short_blobs = 0;  // with elements of bfloat16
  int joined = 0;       // Eltwise layers that a BatchNorm computes
  std::int64_t blob_bytes = 0;
};

void put_inputs(Net& net) {
  Random random(5);
  for (const char* name : {"data", "label"}) {
    Tensor& blob = *net.blob(name);
    std::vector<float> values(static_cast<std::size_t>(blob.count()));
    for (float& value : values) {
      value = name[0] == 'd' ? random.uniform(-1.0F, 1.0F) : static_cast<float>(random.below(5));
    }
    blob.set_values(net.backend(), values);
  }
}

// What somebody may look at, `keeps` says, is not joined with the layer before it.
Outcome run(const std::string& text, Backend& backend, bool keeps) {
  const auto message = parse_net_prototxt(text, "net");
  REQUIRE(message.has_value());
  NetOptions options;
  options.backend = &backend;
  options.seed = 9;
  options.keep_blobs = keeps;
  auto made = Net::create(*message, options);
  INFO((made ? std::string() : made.error().message));
  REQUIRE(made.has_value());
  Net& net = **made;
  put_inputs(net);
  net.clear_gradients();
  const auto loss = net.forward();
  REQUIRE(loss.has_value());
  net.backward();
  Outcome outcome;
  outcome.loss = *loss;
  outcome.gradients =
      test::values_at(backend.device(), net.gradients().data(), net.gradients().size());
  for (const std::string& name : net.blob_names()) {
    outcome.short_blobs += net.blob(name)->layout().type == ElementType::kBfloat16 ? 1 : 0;
  }
  for (const Net::LayerView& view : net.layers()) {
    outcome.joined += view.layer->type() == "Eltwise" && view.fused.backward ? 1 : 0;
  }
  outcome.blob_bytes = net.memory().blob_bytes;
  return outcome;
}

double part_apart(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double apart = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    apart += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += double{b[i]} * b[i];
  }
  return std::sqrt(apart / size);
}

void compare(Backend& tf32, Backend& bfloat16) {
  const std::pair<const char*, std::string> nets[] = {
      {"alex", alex()}, {"inception", inception()}, {"residual", residual()}, {"mixed", mixed()}};
  for (const auto& [name, text] : nets) {
    const bool keeps = GENERATE_COPY(true, false);
    CAPTURE(name, keeps);
    const Outcome expected = run(text, tf32, keeps), got = run(text, bfloat16, keeps);
    CHECK(got.joined == (!keeps && name == std::string("residual") ? 1 : 0));
    CHECK(expected.short_blobs == 0);
    CHECK(got.short_blobs > 3);
    CHECK(got.blob_bytes < expected.blob_bytes);
    CHECK(std::fabs(got.loss - expected.loss) <= 0.02 * expected.loss);
    CHECK(part_apart(got.gradients, expected.gradients) <= 0.05);
  }
}

TEST_CASE("nets compute on bfloat16 arrays what they compute on float32, but for rounding",
          "[net]") {
  const auto log = std::make_shared<test::CallLog>();
  {
    const auto tf32 = test::make_gpu_double(log, {}, gpu::Arithmetic::kTf32);
    const auto bfloat16 = test::make_gpu_double(log, {}, gpu::Arithmetic::kBfloat16);
    compare(*tf32, *bfloat16);
  }
  CHECK(log->violations() == std::vector<std::string>());
}

TEST_CASE("the same on a GPU", "[net]") {
  constexpr int kFirstMajor = 8;  // whose units multiply such numbers
  const auto devices = gpu_devices();
  if (!devices) SPEEDO_SKIP(devices.error().message);
  if (devices->front().major < kFirstMajor) SPEEDO_SKIP("the GPU knows no bfloat16");
  const auto tf32 = make_gpu_backend({.precision = GpuPrecision::kTf32});
  REQUIRE(tf32.has_value());
  const auto bfloat16 = make_gpu_backend({.precision = GpuPrecision::kBfloat16});
  REQUIRE(bfloat16.has_value());
  compare(**tf32, **bfloat16);
}

}  // namespace
}  // namespace speedo
