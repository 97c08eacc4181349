// What a net is told of weights that are not for it.

#include "core/weight_sources.hpp"

#include <cmath>
#include <string>

#include "net_support.hpp"
#include "support/log_capture.hpp"

namespace speedo {
namespace {

using test::LogCapture;

const char* const kInputOfFour =
    "layer { name: 'in' type: 'Input' top: 'in' input_param { shape { dim: 2 dim: 3 } } }\n";

std::string product(const std::string& name, const std::string& bottom) {
  return "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" +
         name + "' inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }\n";
}

caffe::NetParameter weights_of(const std::string& text) {
  caffe::NetParameter weights;
  make_net(text)->to_proto(weights, false);
  return weights;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("Weights for every layer are taken without a word", "[weights]") {
  const std::string text = kInputOfFour + product("a", "in") + product("b", "a");
  const auto net = make_net(text);
  const LogCapture log;
  WeightSources sources;
  REQUIRE(sources.copy("all.caffemodel", weights_of(text), *net));
  REQUIRE(sources.check(*net, false));
  CHECK_FALSE(log.has("has no weights for"));
  CHECK_FALSE(contains(log.text(), "Ignoring"));
}

TEST_CASE("Layers that are ignored, and layers left at their fillers, are named", "[weights]") {
  const caffe::NetParameter weights =
      weights_of(kInputOfFour + product("a", "in") + product("fc8", "a"));
  const auto net = make_net(kInputOfFour + product("a", "in") + product("fc8_new", "a") +
                            product("last", "fc8_new"));
  const LogCapture log;
  WeightSources sources;
  REQUIRE(sources.copy("old.caffemodel", weights, *net));
  REQUIRE(sources.check(*net, false));
  CHECK(contains(log.text(), "] Ignoring source layer fc8\n"));
  CHECK(contains(log.text(), "] 'old.caffemodel' has no weights for fc8_new, last: they stay as"));
}

TEST_CASE("Several files may each give a part", "[weights]") {
  const auto net = make_net(kInputOfFour + product("a", "in") + product("b", "a"));
  const LogCapture log;
  WeightSources sources;
  REQUIRE(sources.copy("a.caffemodel", weights_of(kInputOfFour + product("a", "in")), *net));
  caffe::NetParameter second = weights_of(kInputOfFour + product("a", "in") + product("b", "a"));
  second.mutable_layer()->DeleteSubrange(1, 1);
  REQUIRE(sources.copy("b.caffemodel", second, *net));
  REQUIRE(sources.check(*net, false));
  CHECK_FALSE(log.has("has no weights for"));
}

TEST_CASE("Weights that are not finite are named in one warning", "[weights]") {
  const auto net = make_net(kInputOfFour + product("a", "in") + product("b", "a"));
  caffe::NetParameter weights =
      weights_of(kInputOfFour + product("a", "in") + product("b", "a") + product("gone", "b"));
  const auto blob = [&](int layer, int number) {
    return weights.mutable_layer(layer)->mutable_blobs(number);
  };
  blob(3, 0)->set_data(0, NAN);
  const LogCapture log;
  WeightSources sources;
  REQUIRE(sources.copy("x.caffemodel", weights, *net));
  CHECK_FALSE(contains(log.text(), "NaN"));
  blob(1, 0)->set_data(1, NAN);
  blob(2, 1)->set_data(0, -INFINITY);
  REQUIRE(sources.copy("x.caffemodel", weights, *net));
  CHECK(contains(log.text(),
                 "] 'x.caffemodel' has values that are NaN or infinite for a (parameter 0), "
                 "b (parameter 1): "));
}

TEST_CASE("Weights of another net are an error, or a warning to who trains", "[weights]") {
  const auto net = make_net(kInputOfFour + product("conv1", "in"));
  const caffe::NetParameter weights = weights_of(kInputOfFour + product("ip1", "in"));
  const LogCapture log;
  WeightSources sources;
  REQUIRE(sources.copy("other.caffemodel", weights, *net));
  const auto checked = sources.check(*net, false);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code == ErrorCode::kMismatch);
  CHECK(contains(checked.error().message,
                 "'other.caffemodel' has weights for none of the net's layers (conv1), but for "
                 "ip1"));
  CHECK_FALSE(log.has("has no weights for"));
  REQUIRE(sources.check(*net, true));
  CHECK(contains(log.text(), "] 'other.caffemodel' has no weights for conv1"));
}

TEST_CASE("A layer that shares another's parameters needs none of its own", "[weights]") {
  const std::string shared = "param { name: 'w' } param { name: 'b' }";
  const auto with_names = [&](const std::string& name) {
    std::string text = product(name, "in");
    return text.insert(text.rfind('}'), shared);
  };
  const auto net = make_net(kInputOfFour + with_names("a") + with_names("b"));
  const LogCapture log;
  WeightSources sources;
  REQUIRE(sources.copy("a.caffemodel", weights_of(kInputOfFour + with_names("a")), *net));
  REQUIRE(sources.check(*net, false));
  CHECK_FALSE(log.has("has no weights for"));
  // A net without parameters wants nothing.
  REQUIRE(WeightSources().check(*make_net(kInputOfFour), false));
}

TEST_CASE("Queries of URIs are in no line of a net, and in no file of weights", "[weights]") {
  NetOptions options = net_options();
  options.logs_set_up = true;
  const LogCapture log;
  const auto net = make_net(
      "layer { name: 'a?b' type: 'Input' top: 'in' input_param { shape { dim: 1 } } "
      "data_param { source: 'https://h/a?hidden,https://h/b?hidden' } "
      "image_data_param { source: 'local?' root_folder: 'http://ann:hidden@h/d/' } "
      "transform_param { mean_file: 'https://h/m?hidden' } }", options);
  CHECK(log.has("source: \"https://h/a,https://h/b\""));
  CHECK_FALSE(contains(log.text(), "hidden"));
  caffe::NetParameter written;
  net->to_proto(written, false);
  CHECK(written.layer(0).name() == "a?b");
  CHECK(written.layer(0).data_param().source() == "https://h/a,https://h/b");
  CHECK(written.layer(0).image_data_param().source() == "local?");
  CHECK(written.layer(0).image_data_param().root_folder() == "http://h/d/");
  CHECK(written.layer(0).transform_param().mean_file() == "https://h/m");

  WeightSources sources;
  REQUIRE(sources.copy("http://h/w?hidden", written, *net));
  REQUIRE(sources.check(*net, false));
  CHECK_FALSE(contains(log.text(), "hidden"));
}

}  // namespace
}  // namespace speedo
