#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"

namespace speedo {

inline Backend& test_backend() {
  static const std::unique_ptr<Backend> kBackend = test::make_backend(1);
  return *kBackend;
}

inline caffe::NetParameter net_message(const std::string& text) {
  auto net = parse_net_prototxt(text, "net");
  INFO((net ? "" : net.error().message));
  REQUIRE(net.has_value());
  return *net;
}

inline NetOptions net_options(Phase phase = Phase::kTrain) {
  NetOptions options;
  options.phase = phase;
  options.backend = &test_backend();
  options.seed = 5;
  return options;
}

inline std::unique_ptr<Net> make_net(const std::string& text,
                                     const NetOptions& options = net_options()) {
  auto net = Net::create(net_message(text), options);
  INFO((net ? "" : net.error().message));
  REQUIRE(net.has_value());
  return std::move(net).value();
}

inline Error net_error(const std::string& text, const NetOptions& options = net_options()) {
  const auto net = Net::create(net_message(text), options);
  REQUIRE_FALSE(net.has_value());
  CHECK(net.error().message.find('\n') == std::string::npos);
  return net.error();
}

inline std::vector<float> values_of(const float* data, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  test_backend().device().download(values, data);
  return values;
}

inline const Net::LayerView& layer_of(const Net& net, const std::string& name) {
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->name() == name) {
      return view;
    }
  }
  FAIL("no layer " << name);
  return net.layers().front();
}

// Pieces of prototxt.
inline std::string input(const std::string& top, const std::string& dims) {
  return "layer { name: '" + top + "' type: 'Input' top: '" + top + "' input_param { shape { " +
         dims + " } } }\n";
}

inline std::string product(const std::string& name, const std::string& bottom,
                           const std::string& more = "", int outputs = 3) {
  return "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" +
         name + "' inner_product_param { num_output: " + std::to_string(outputs) +
         " weight_filler { type: 'xavier' } } " + more + " }\n";
}

inline std::string loss(const std::string& bottom, const std::string& label,
                        const std::string& more = "") {
  return "layer { name: 'loss' type: 'EuclideanLoss' bottom: '" + bottom + "' bottom: '" + label +
         "' top: 'loss' " + more + " }\n";
}

}  // namespace speedo
