#include "net_run.hpp"

#include <algorithm>
#include <cmath>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

void fill_inputs(Net& net, std::uint64_t pass) {
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->type() != "Input") continue;
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      Random random(test::varied(pass * 100 + view.top_names[i].size()));
      std::vector<float> values(static_cast<std::size_t>(view.tops[i]->count()));
      const bool is_label = view.top_names[i] == "label";
      for (float& value : values) {
        value = is_label ? static_cast<float>(random.below(3)) : random.uniform(-1.0F, 1.0F);
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

NetRun run_net(const std::string& text, Backend& backend, NetOptions options, int passes) {
  const auto message = parse_net_prototxt(text, "net");
  INFO((message ? "" : message.error().message));
  REQUIRE(message.has_value());
  options.backend = &backend;
  options.seed = test::varied(5);
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
    fill_inputs(net, static_cast<std::uint64_t>(pass));
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

void check_close_by(double measure, const std::string& what, const std::vector<float>& a,
                    const std::vector<float>& b) {
  INFO(what);
  REQUIRE(a.size() == b.size());
  double difference = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    difference = std::max(difference, std::fabs(double{a[i]} - double{b[i]}));
  }
  CHECK(difference <= test::tolerated(1e-5) * measure);
}

}  // namespace

void check_close(const std::string& what, const std::vector<float>& a,
                 const std::vector<float>& b) {
  check_close_by(largest(b), what, a, b);
}

void check_close(const NetRun& a, const NetRun& b) {
  check_close("losses", a.losses, b.losses);
  double measure = largest(b.parameter_gradients);
  for (const auto& [name, values] : b.gradients) measure = std::max(measure, largest(values));
  check_close_by(measure, "parameters", a.parameter_gradients, b.parameter_gradients);
  REQUIRE(a.values.size() == b.values.size());
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (const auto& [name, values] : a.values) check_close(name, values, b.values.at(name));
  for (const auto& [name, values] : a.gradients) {
    check_close_by(measure, "gradient of " + name, values, b.gradients.at(name));
  }
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
