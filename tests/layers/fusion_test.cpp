// Layers that do the work of those after them, in one pass, give what they give apart.

#include <algorithm>
#include <cmath>
#include <memory>

#include <speedo/backend/backend.hpp>
#include <speedo/base/random.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

constexpr double kTolerance = 1e-5;  // of the largest value

std::string layer(const std::string& name, const std::string& type, const std::string& bottom,
                  const std::string& top, const std::string& options = "") {
  return "layer { name: '" + name + "' type: '" + type + "' bottom: '" + bottom + "' top: '" + top +
         "' " + options + " }\n";
}

std::string input(const std::string& name, const std::string& dims) {
  return "layer { name: '" + name + "' type: 'Input' top: '" + name + "' input_param { shape { " +
         dims + " } } }\n";
}

// Two convolutions, `middle` between them on blob `a` and `end` behind them on blob `b`.
std::string net_text(int channels, const std::string& middle, const std::string& end) {
  const auto convolution = [&](const std::string& name, const std::string& bottom) {
    return layer(name, "Convolution", bottom, name,
                 "convolution_param { num_output: " + std::to_string(channels) +
                     " kernel_size: 3 pad: 1 weight_filler { type: 'msra' } }");
  };
  return input("data", "dim: 3 dim: 3 dim: 6 dim: 5") +
         input("label", "dim: 3 dim: " + std::to_string(channels) + " dim: 6 dim: 5") +
         convolution("a", "data") + middle + convolution("b", "a") + end +
         layer("loss", "EuclideanLoss", "b", "loss", "bottom: 'label'");
}

std::string chain(const std::string& blob, const std::string& norm, const std::string& scale,
                  const std::string& relu) {
  std::string text = layer(blob + "/bn", "BatchNorm", blob, blob, norm);
  if (scale != "none") text += layer(blob + "/scale", "Scale", blob, blob, scale);
  if (relu != "none") text += layer(blob + "/relu", "ReLU", blob, blob, relu);
  return text;
}

struct Outcome {
  std::vector<float> losses, weights, gradients, input_grad;
  std::vector<std::pair<std::string, std::vector<float>>> blobs;
  int fused = 0;          // layers whose work another one does
  int fused_forward = 0;  // whose forward pass, at least
  int joined = 0;         // Eltwise layers, both of whose passes
};

std::vector<float> copy_of(Backend& backend, const Arena& arena) {
  std::vector<float> values(static_cast<std::size_t>(arena.size()));
  backend.device().download(values, arena.data());
  return values;
}

// Parameters that differ from where fillers put them, so that each matters.
void stir_weights(Net& net) {
  Random random(test::varied(3));
  Arena& arena = net.weights();
  for (const ParameterSlot& slot : net.layout().slots()) {
    std::vector<float> values(static_cast<std::size_t>(slot.count()));
    for (float& value : values) {
      value = slot.is_statistic ? random.uniform(0.5F, 1.5F) : random.uniform(-0.7F, 0.9F);
    }
    net.backend().device().upload(arena.data() + slot.offset, values);
  }
}

Outcome run(const std::string& text, Backend& backend, NetOptions options, bool may_fuse) {
  const auto message = parse_net_prototxt(text, "net");
  REQUIRE(message.has_value());
  options.backend = &backend;
  options.may_fuse = may_fuse;
  options.seed = 9;
  auto made = Net::create(*message, options);
  INFO((made ? std::string() : made.error().message));
  REQUIRE(made.has_value());
  Net& net = **made;
  stir_weights(net);
  Outcome outcome;
  for (int pass = 0; pass < 2; ++pass) {
    Random random(test::varied(static_cast<std::uint64_t>(pass)));
    for (const char* name : {"data", "label"}) {
      Tensor& blob = *net.blob(name);
      std::vector<float> values(static_cast<std::size_t>(blob.count()));
      for (float& value : values) value = random.uniform(-1.0F, 1.0F);
      blob.set_values(backend, values);
    }
    net.clear_gradients();
    const auto loss = net.forward();
    REQUIRE(loss.has_value());
    outcome.losses.push_back(*loss);
    if (options.trains) net.backward();
  }
  outcome.weights = copy_of(backend, net.weights());
  outcome.gradients = copy_of(backend, net.gradients());
  for (const Net::LayerView& view : net.layers()) outcome.fused += view.fused.backward ? 1 : 0;
  for (const Net::LayerView& view : net.layers()) {
    outcome.fused_forward += view.fused.forward ? 1 : 0;
    const bool is_joined = view.layer->type() == "Eltwise" && view.fused.backward;
    outcome.joined += is_joined ? 1 : 0;
  }
  if (!options.keep_blobs) return outcome;
  for (const std::string& name : net.blob_names()) {
    const Tensor& blob = *net.blob(name);
    outcome.blobs.emplace_back(name, blob.values(backend));
    if (blob.has_grad()) outcome.blobs.emplace_back(name + " gradient", blob.gradients(backend));
  }
  return outcome;
}

void compare(const std::string& what, const std::vector<float>& a, const std::vector<float>& b) {
  INFO(what);
  REQUIRE(a.size() == b.size());
  double largest = 0.0, difference = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    largest = std::max(largest, std::fabs(double{b[i]}));
    difference = std::max(difference, std::fabs(double{a[i]} - double{b[i]}));
  }
  CHECK(difference <= test::tolerated(kTolerance) * std::max(largest, 1e-3));
}

void compare(const std::string& text, Backend& backend, const NetOptions& options, int fused) {
  INFO(text << " on " << backend.name());
  const Outcome together = run(text, backend, options, true);
  const Outcome apart = run(text, backend, options, false);
  CHECK(together.fused == fused);
  CHECK(apart.fused == 0);
  compare("losses", together.losses, apart.losses);
  compare("weights and statistics", together.weights, apart.weights);
  compare("gradients", together.gradients, apart.gradients);
  REQUIRE(together.blobs.size() == apart.blobs.size());
  for (std::size_t i = 0; i < together.blobs.size(); ++i) {
    compare(together.blobs[i].first, together.blobs[i].second, apart.blobs[i].second);
  }
}

// On the reference backend in every layout, on the CPU's as it chooses.
void compare_everywhere(const std::string& text, const NetOptions& options, int fused) {
  for (const LayoutKind kind : {LayoutKind::kPlain, LayoutKind::kBlocked8, LayoutKind::kBlocked16,
                                LayoutKind::kChannelsLast}) {
    compare(text, *make_reference_backend(kind), options, fused);
  }
  compare(text, *test::make_backend(2), options, fused);
}

const std::string kBias = "scale_param { bias_term: true }";

TEST_CASE("fused BatchNorm, Scale and ReLU give what they give apart") {
  const int channels = GENERATE(5, 16);
  NetOptions options;
  options.keep_blobs = GENERATE(false, true);
  const auto check = [&](const std::string& norm, const std::string& scale, const std::string& relu,
                         int fused) {
    compare_everywhere(
        net_text(channels, chain("a", norm, scale, relu), chain("b", norm, scale, "none")), options,
        fused);
  };
  check("", kBias, "", 3);
  check("", "", "", 3);
  check("", "none", "", 1);
  check("", kBias, "none", 2);
  check("", kBias, "relu_param { negative_slope: 0.1 }", 3);
  check("batch_norm_param { use_global_stats: true eps: 0.1 }", kBias, "", 3);
}

TEST_CASE("a test net fuses, too") {
  NetOptions options;
  options.phase = Phase::kTest;
  options.keep_blobs = GENERATE(false, true);
  compare_everywhere(net_text(16, chain("a", "", kBias, ""), chain("b", "", kBias, "none")),
                     options, 3);
}

TEST_CASE("frozen factors get no gradient, fused or not") {
  const std::string frozen = kBias + " param { lr_mult: 0 } param { lr_mult: 0 }";
  const std::string half = kBias + " param { lr_mult: 0 }";
  NetOptions options;
  options.keep_blobs = GENERATE(false, true);
  compare_everywhere(net_text(5, chain("a", "", frozen, ""), chain("b", "", half, "")), options, 4);
}

TEST_CASE("what cannot be one pass stays apart") {
  NetOptions options;
  options.keep_blobs = GENERATE(false, true);
  // The Scale is trained, what is before it is not: no gradient goes down.
  const std::string on_data = layer("norm", "BatchNorm", "data", "x") +
                              layer("scale", "Scale", "x", "x", kBias) +
                              layer("relu", "ReLU", "x", "x");
  const std::string inputs =
      input("data", "dim: 4 dim: 3 dim: 5") + input("label", "dim: 4 dim: 3 dim: 5");
  const std::string loss = layer("loss", "EuclideanLoss", "x", "loss", "bottom: 'label'");
  compare_everywhere(inputs + on_data + loss, options, 0);
  // A Scale over other axes than the channels, a ReLU that has its own top, a negative slope below
  // 0.
  compare_everywhere(net_text(5, chain("a", "", "scale_param { axis: 2 num_axes: 2 }", ""),
                              chain("b", "", "none", "relu_param { negative_slope: -0.5 }")),
                     options, 0);
}

TEST_CASE("with a top of its own a BatchNorm fuses only where nobody looks at gradients") {
  const std::string beside = layer("bn", "BatchNorm", "a", "y") +
                             layer("scale", "Scale", "y", "y", kBias) +
                             layer("relu", "ReLU", "y", "y") + layer("next", "Scale", "y", "a2");
  std::string text = net_text(5, beside, "");
  const std::string from = "bottom: 'a' top: 'b'";
  text.replace(text.find(from), from.size(), "bottom: 'a2' top: 'b'");
  NetOptions options;
  compare_everywhere(text, options, 2);
  options.keep_blobs = true;
  compare_everywhere(text, options, 0);
}

// Every activation with an option of its own, whether its backward pass reads what is gone in
// place, and whether the reference backend's convolution has it.
struct Activation {
  std::string type, options;
  bool reads_bottom = false, is_convolved = true;
};

const std::vector<Activation>& activations() {
  static const std::vector<Activation> all = {
      {"AbsVal", "", true},
      {"BNLL", "", true},
      {"Clip", "clip_param { min: -0.5 max: 0.75 }", true},
      {"ELU", "elu_param { alpha: 0.5 }"},
      {"Exp", "exp_param { base: 2 scale: 0.05 }"},
      {"Log", "log_param { scale: 0.01 shift: 3 }", true},
      {"Power", "power_param { power: 2 shift: 0.5 }", true},
      {"Power", "power_param { scale: 0.5 shift: 0.5 }"},
      {"ReLU", ""},
      {"Sigmoid", ""},
      {"Swish", "swish_param { beta: 1.5 }", true},
      {"TanH", "", false, false},
  };
  return all;
}

void compare_forward(const std::string& text, Backend& backend, const NetOptions& options,
                     int fused) {
  INFO(text << " on " << backend.name());
  const Outcome together = run(text, backend, options, true);
  const Outcome apart = run(text, backend, options, false);
  CHECK(together.fused_forward == fused);
  CHECK(apart.fused_forward == 0);
  compare("losses", together.losses, apart.losses);
  compare("gradients", together.gradients, apart.gradients);
}

TEST_CASE("every producer applies every activation that follows in place") {
  const Activation activation = GENERATE(from_range(activations()));
  const int channels = GENERATE(5, 16);
  const std::string after = layer("act", activation.type, "x", "x", activation.options);
  const std::string rest = layer("end", "Convolution", "x", "b",
                                 "convolution_param { num_output: " + std::to_string(channels) +
                                     " kernel_size: 1 weight_filler { type: 'msra' } }");
  const std::string loss = layer("loss", "EuclideanLoss", "b", "loss", "bottom: 'label'");
  const std::string head = net_text(channels, "", "");
  const std::string inputs = head.substr(0, head.find("layer { name: 'b'"));
  const bool trains = GENERATE(true, false);
  NetOptions options;
  options.trains = trains;
  const int fused = activation.reads_bottom && trains ? 0 : 1;
  const auto check = [&](const std::string& producer, bool is_convolution) {
    const std::string text = inputs + producer + after + rest + loss;
    for (const LayoutKind kind : {LayoutKind::kPlain, LayoutKind::kBlocked8}) {
      const int has = is_convolution && !activation.is_convolved ? 0 : fused;
      compare_forward(text, *make_reference_backend(kind), options, has);
    }
    compare_forward(text, *test::make_backend(2), options, fused);
  };
  check(layer("x", "Convolution", "a", "x",
              "convolution_param { num_output: 5 kernel_size: 3 pad: 1 weight_filler { type: "
              "'msra' } }"),
        true);
  check(layer("x", "InnerProduct", "a", "x",
              "inner_product_param { num_output: 5 axis: -1 weight_filler { type: 'msra' } }"),
        false);
  check(layer("x", "Scale", "a", "x", kBias), false);
  check(layer("x", "Bias", "a", "x"), false);
  for (const std::string operation : {"SUM", "PROD", "MAX"}) {
    check(layer("y", "Power", "a", "y", "power_param { scale: 0.5 power: 1 }") +
              layer("z", "Sigmoid", "a", "z") +
              layer("x", "Eltwise", "a", "x",
                    "bottom: 'y' bottom: 'z' eltwise_param { operation: " + operation + " }"),
          false);
  }
}

// A blob with several readers, made in place by an activation behind a convolution.
std::string read_often(const std::string& activation, int readers) {
  const std::string head = net_text(5, "", "");
  std::string text = head.substr(0, head.find("layer { name: 'b'")) + activation;
  std::string sum;
  for (int i = 0; i < readers; ++i) {
    const std::string name = "r" + std::to_string(i);
    text += layer(name, "Power", "a", name,
                  "power_param { scale: " + std::to_string(0.25 * (i + 1)) + " }");
    if (i > 0) sum += "bottom: '" + name + "' ";
  }
  return text + layer("b", "Eltwise", "r0", "b", sum) +
         layer("loss", "EuclideanLoss", "b", "loss", "bottom: 'label'");
}

TEST_CASE("a Split applies the slope of what made its bottom in place") {
  NetOptions options;
  options.keep_blobs = GENERATE(false, true);
  const int readers = GENERATE(2, 3, 6);
  const auto check = [&](const std::string& activation, int fused) {
    compare_everywhere(read_often(activation, readers), options, fused);
  };
  check(layer("act", "ReLU", "a", "a"), 1);
  check(layer("act", "ReLU", "a", "a", "relu_param { negative_slope: 0.25 }"), 1);
  check(layer("act", "TanH", "a", "a"), 1);
  check(layer("act", "AbsVal", "a", "a"), 0);
  check(layer("act", "Sigmoid", "a", "a") + layer("act2", "ReLU", "a", "a"), 1);
  check(layer("bn", "BatchNorm", "a", "a") + layer("act", "ReLU", "a", "a"), 1);
}

// Two residual blocks: a sum of a chain of normalizations with the block's input, or with another
// such chain, and an activation behind it. The shortcut stands before the chain, or behind it.
struct Blocks {
  std::string norm = "", relu = "", shortcut_options = "";
  bool is_in_place = true, has_chain_in_shortcut = false, is_shortcut_first = true;
  std::string coefficients = "";
  int channels = 16;
};

std::string block_text(const Blocks& of, const std::string& from, const std::string& to) {
  const auto branch = [&](const std::string& name, const std::string& options) {
    const std::string y = of.is_in_place ? name : name + "y";
    return layer(name, "Convolution", from, name,
                 "convolution_param { num_output: " + std::to_string(of.channels) +
                     " kernel_size: 1 weight_filler { type: 'msra' } } " + options) +
           layer(name + "/bn", "BatchNorm", name, y, of.norm) +
           layer(name + "/scale", "Scale", y, y, kBias + options);
  };
  const std::string y = of.is_in_place ? "" : "y";
  std::string shortcut = from, text = branch(to + "c", "");
  if (of.has_chain_in_shortcut) {
    const std::string other = branch(to + "s", of.shortcut_options);
    text = of.is_shortcut_first ? other + text : text + other;
    shortcut = to + "s" + y;
  }
  return text +
         layer(to, "Eltwise", shortcut, to,
               "bottom: '" + to + "c" + y + "' eltwise_param { " + of.coefficients + " }") +
         layer(to + "/relu", "ReLU", to, to, of.relu);
}

std::string blocks_text(const Blocks& of) {
  const std::string head = net_text(of.channels, "", "");
  return head.substr(0, head.find("layer { name: 'b'")) + block_text(of, "a", "d") +
         block_text(of, "d", "b") +
         layer("loss", "EuclideanLoss", "b", "loss", "bottom: 'label'");
}

// Eltwise layers whose passes others do, with and without anybody who looks at blobs.
void compare_blocks(const Blocks& of, int joined, NetOptions options = {}) {
  const std::string text = blocks_text(of);
  const auto check = [&](Backend& backend, int expected) {
    INFO(text << " on " << backend.name());
    const Outcome together = run(text, backend, options, true);
    const Outcome apart = run(text, backend, options, false);
    CHECK(together.joined == expected);
    compare("losses", together.losses, apart.losses);
    compare("weights and statistics", together.weights, apart.weights);
    compare("gradients", together.gradients, apart.gradients);
    REQUIRE(together.blobs.size() == apart.blobs.size());
    for (std::size_t i = 0; i < together.blobs.size(); ++i) {
      compare(together.blobs[i].first, together.blobs[i].second, apart.blobs[i].second);
    }
  };
  for (const LayoutKind kind :
       {LayoutKind::kPlain, LayoutKind::kBlocked8, LayoutKind::kChannelsLast}) {
    check(*make_reference_backend(kind), joined);
  }
  const std::unique_ptr<Backend> own = test::make_backend(2);
  check(*own, own->adds(Producer::kBatchNorm) ? joined : 0);
}

TEST_CASE("a BatchNorm adds what an Eltwise adds to it") {
  Blocks of;
  of.channels = GENERATE(5, 16);
  of.is_in_place = GENERATE(true, false);
  of.has_chain_in_shortcut = GENERATE(false, true);
  of.is_shortcut_first = GENERATE(true, false);
  NetOptions options;
  const int kind = GENERATE(0, 1, 2);
  if (kind == 1) options.phase = Phase::kTest;
  if (kind == 2) of.norm = "batch_norm_param { use_global_stats: true eps: 0.1 }";
  compare_blocks(of, 2, options);
  options.trains = false;
  compare_blocks(of, 2, options);
}

TEST_CASE("a BatchNorm adds whatever activation is behind the sum, and whatever is frozen") {
  Blocks of;
  of.relu = GENERATE("", "relu_param { negative_slope: 0.25 }",
                     "relu_param { negative_slope: -0.5 }");
  compare_blocks(of, 2);
  of.has_chain_in_shortcut = true;
  of.shortcut_options = " param { lr_mult: 0 } param { lr_mult: 0 } ";
  compare_blocks(of, 2);
}

TEST_CASE("what somebody looks at, or is no plain sum, is not joined") {
  Blocks of;
  NetOptions options;
  options.keep_blobs = true;
  compare_blocks(of, 0, options);
  options.keep_blobs = false;
  options.kept_blobs = {"dc"};
  compare_blocks(of, 1, options);
  options.kept_blobs = {"d"};
  compare_blocks(of, 2, options);
  for (const char* coefficients : {"coeff: 1 coeff: 0.5", "operation: MAX", "operation: PROD"}) {
    of.coefficients = coefficients;
    compare_blocks(of, 0);
  }
}

TEST_CASE("a fused layer's gradients are reported after they are made") {
  const auto message =
      parse_net_prototxt(net_text(5, chain("a", "", kBias, ""), chain("b", "", kBias, "")), "net");
  REQUIRE(message.has_value());
  const auto backend = test::make_backend(1);
  NetOptions options;
  options.backend = backend.get();
  const auto net = Net::create(*message, options);
  REQUIRE(net.has_value());
  stir_weights(**net);
  std::vector<float> reported(static_cast<std::size_t>((*net)->gradients().size()));
  (*net)->on_gradient_ready([&](const Bucket& bucket, const StreamEvent& final) {
    backend->device().wait(final);
    backend->device().download(std::span(reported).subspan(static_cast<std::size_t>(bucket.offset),
                                                           static_cast<std::size_t>(bucket.count)),
                               (*net)->gradients().data() + bucket.offset);
  });
  REQUIRE((*net)->forward().has_value());
  (*net)->backward();
  CHECK(reported == copy_of(*backend, (*net)->gradients()));
}

}  // namespace
}  // namespace speedo
