#include "net_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/backend/layout.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

// Beside the plain one, that a backend may prefer.
constexpr std::array kOtherLayouts{LayoutKind::kBlocked8, LayoutKind::kBlocked16,
                                   LayoutKind::kChannelsLast};

// Data move by a millionth where there is a jitter, which rounding does not reach.
void fill_inputs(Net& net, std::uint64_t pass, const Draw& draw) {
  Random jitter(draw.jitter);
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->type() != "Input") continue;
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      Random random(test::varied(1000 * draw.number + pass * 100 + view.top_names[i].size()));
      std::vector<float> values(static_cast<std::size_t>(view.tops[i]->count()));
      const bool is_label = view.top_names[i] == "label";
      for (float& value : values) {
        value = is_label ? static_cast<float>(random.below(3)) : random.uniform(-1.0F, 1.0F);
        if (draw.jitter != 0 && !is_label) value *= 1.0F + jitter.uniform(-1e-6F, 1e-6F);
      }
      view.tops[i]->set_values(net.backend(), values);
    }
  }
}

void read_blobs(const Net& net, NetRun& run) {
  for (const std::string& name : net.blob_names()) {
    const Tensor& blob = *net.blob(name);
    run.values[name] = blob.values(net.backend());
    if (blob.has_grad()) run.gradients[name] = blob.gradients(net.backend());
  }
}

}  // namespace

NetRun run_net(const std::string& text, Backend& backend, NetOptions options, int passes,
               const Draw& draw) {
  const auto message = parse_net_prototxt(text, "net");
  INFO((message ? "" : message.error().message));
  REQUIRE(message.has_value());
  options.backend = &backend;
  options.seed = test::varied(5 + draw.number);
  const auto made = Net::create(*message, options);
  INFO((made ? "" : made.error().message));
  REQUIRE(made.has_value());
  Net& net = **made;
  NetRun run;
  run.memory = net.memory();
  for (const Net::LayerView& view : net.layers()) {
    run.reorders += view.is_reorder ? 1 : 0;
    run.fused += view.fused.forward ? 1 : 0;
  }
  for (int pass = 0; pass < passes; ++pass) {
    fill_inputs(net, static_cast<std::uint64_t>(pass), draw);
    net.clear_gradients();
    const auto loss = net.forward();
    INFO((loss ? "" : loss.error().message));
    REQUIRE(loss.has_value());
    run.losses.push_back(*loss);
    if (options.trains) net.backward();
  }
  run.parameter_gradients.resize(static_cast<std::size_t>(net.gradients().size()));
  backend.device().download(run.parameter_gradients, net.gradients().data());
  if (options.keep_blobs) read_blobs(net, run);
  for (const std::string& output : net.output_names()) {
    run.values[output] = net.blob(output)->values(backend);
  }
  return run;
}

namespace {

// At least 0.01: a probability near 1, and with it a small loss, is known to 6e-8 only.
double largest(const std::vector<float>& values) {
  double result = 1e-2;
  for (const float value : values) result = std::max(result, std::fabs(double{value}));
  return result;
}

double largest_gradient(const NetRun& run) {
  double result = largest(run.parameter_gradients);
  for (const auto& [name, values] : run.gradients) result = std::max(result, largest(values));
  return result;
}

// As a share of `measure`; infinite where one is not finite.
double largest_difference(const std::vector<float>& a, const std::vector<float>& b,
                          double measure) {
  REQUIRE(a.size() == b.size());
  double result = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double{a[i]} - double{b[i]});
    result = std::max(result, std::isfinite(difference) ? difference : HUGE_VAL);
  }
  return result / measure;
}

// The arrays of two runs that differ by more than `tolerance`, and by how much.
std::string differences(const NetRun& a, const NetRun& b, double tolerance) {
  std::string result;
  const auto compare = [&](const std::string& what, const std::vector<float>& values,
                           const std::vector<float>& expected, double measure) {
    const double share = largest_difference(values, expected, measure);
    if (share > tolerance) result += what + " by " + std::to_string(share) + "\n";
  };
  const double measure = largest_gradient(b);
  compare("losses", a.losses, b.losses, largest(b.losses));
  compare("parameters' gradients", a.parameter_gradients, b.parameter_gradients, measure);
  REQUIRE(a.values.size() == b.values.size());
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (const auto& [name, values] : a.values) {
    const std::vector<float>& expected = b.values.at(name);
    compare(name, values, expected, largest(expected));
  }
  for (const auto& [name, values] : a.gradients) {
    compare("gradient of " + name, values, b.gradients.at(name), measure);
  }
  return result;
}

// Whether a value lies so near a kink (ReLU, a maximum) that rounding decides on its side.
bool is_at_kink(const std::string& text, const NetOptions& options, Draw draw,
                const NetRun& plain) {
  constexpr std::uint64_t kJitters = 8;
  constexpr double kJump = 1e-4;
  for (draw.jitter = 1; draw.jitter <= kJitters; ++draw.jitter) {
    const NetRun moved = run_net(text, *make_reference_backend(), options, kPasses, draw);
    if (!differences(moved, plain, kJump).empty()) return true;
  }
  return false;
}

struct Compared {
  NetRun plain;
  std::string different;
  std::vector<int> reorders;
};

Compared compare_layouts(const std::string& text, const NetOptions& options, const Draw& draw) {
  const double tolerance = test::tolerated(1e-5);
  Compared result;
  result.plain = run_net(text, *make_reference_backend(), options, kPasses, draw);
  CHECK(result.plain.reorders == 0);
  for (const LayoutKind kind : kOtherLayouts) {
    const NetRun run = run_net(text, *make_reference_backend(kind), options, kPasses, draw);
    result.different += differences(run, result.plain, tolerance);
    result.reorders.push_back(run.reorders);
  }
  for (const int threads : {1, 2}) {
    const NetRun run = run_net(text, *test::make_backend(threads), options, kPasses, draw);
    result.different += differences(run, result.plain, tolerance);
  }
  return result;
}

}  // namespace

void check_close(const std::string& what, const std::vector<float>& a,
                 const std::vector<float>& b) {
  INFO(what);
  CHECK(largest_difference(a, b, largest(b)) <= test::tolerated(1e-5));
}

std::vector<int> check_in_all_layouts(const std::string& text, const NetOptions& options) {
  INFO(text);
  constexpr std::uint64_t kDraws = 5;
  for (Draw draw; draw.number < kDraws; ++draw.number) {
    Compared compared = compare_layouts(text, options, draw);
    if (compared.different.empty()) return std::move(compared.reorders);
    INFO(compared.different);
    REQUIRE(is_at_kink(text, options, draw, compared.plain));
  }
  FAIL("each of " << kDraws << " draws has a value at a kink");
  return {};
}

std::string conv(const std::string& name, const std::string& bottom, int outputs, int kernel) {
  return layer(name, "Convolution", {bottom},
               "convolution_param { num_output: " + std::to_string(outputs) +
                   " kernel_size: " + std::to_string(kernel) +
                   " pad: " + std::to_string(kernel / 2) + " weight_filler { type: 'msra' } }");
}

std::string in_place(const std::string& type, const std::string& blob) {
  return "layer { name: '" + blob + "/" + type + "' type: '" + type + "' bottom: '" + blob +
         "' top: '" + blob + "' }\n";
}

std::string layer(const std::string& name, const std::string& type,
                  const std::vector<std::string>& bottoms, const std::string& options) {
  std::string text = "layer { name: '" + name + "' type: '" + type + "' top: '" + name + "'";
  for (const std::string& bottom : bottoms) text += " bottom: '" + bottom + "'";
  return text + " " + options + " }\n";
}

}  // namespace speedo
