// Layers that learn a top's shape in their forward pass: what is behind them computes what a net of
// that shape computes, whatever the passes before had.

#include <cmath>

#include "net_run.hpp"
#include "net_support.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kItems = 6, kImage = 2 * 4 * 4, kTarget = 3;

// The net behind the filter, which has the same parameters without it.
std::string tail(const std::string& images, const std::string& targets) {
  return conv("c2", images, 4) + in_place("ReLU", "c2") + layer("bn", "BatchNorm", {"c2"}) +
         layer("scale", "Scale", {"bn"}) +
         layer("pool", "Pooling", {"scale"}, "pooling_param { kernel_size: 2 stride: 2 }") +
         layer("drop", "Dropout", {"pool"}, "dropout_param { dropout_ratio: 0 }") +
         product("ip", "drop") + in_place("TanH", "ip") + loss("ip", targets);
}

std::string filtered() {
  return input("data", "dim: 6 dim: 2 dim: 4 dim: 4") + input("target", "dim: 6 dim: 3") +
         input("selector", "dim: 6 dim: 1") + conv("c1", "data", 3) + in_place("ReLU", "c1") +
         "layer { name: 'filter' type: 'Filter' bottom: 'c1' bottom: 'target' bottom: 'selector' "
         "top: 'images' top: 'targets' }\n" +
         tail("images", "targets");
}

std::string unfiltered(std::size_t items) {
  const std::string batch = "dim: " + std::to_string(items);
  return input("data", batch + " dim: 2 dim: 4 dim: 4") + input("target", batch + " dim: 3") +
         conv("c1", "data", 3) + in_place("ReLU", "c1") + tail("c1", "target");
}

float value_at(std::int64_t index) { return std::sin(static_cast<float>(index * index + 1)); }

// Those of the items, one after the other.
std::vector<float> rows(const std::vector<std::int64_t>& items, std::int64_t size) {
  std::vector<float> values;
  for (const std::int64_t item : items) {
    for (std::int64_t i = 0; i < size; ++i) values.push_back(value_at(item * size + i));
  }
  return values;
}

struct PassResult {
  float loss = 0.0F;
  std::vector<float> gradients;
};

PassResult pass(Net& net) {
  net.clear_gradients();
  const auto passed = net.forward();
  INFO((passed ? std::string() : passed.error().message));
  REQUIRE(passed.has_value());
  net.backward();
  return {*passed, speedo::values_of(net.gradients().data(), net.gradients().size())};
}

PassResult pass_with(Net& net, const std::vector<std::int64_t>& items) {
  std::vector<float> selector(kItems, 0.0F);
  for (const std::int64_t item : items) selector[static_cast<std::size_t>(item)] = 1.0F;
  net.blob("data")->set_values(net.backend(), rows({0, 1, 2, 3, 4, 5}, kImage));
  net.blob("target")->set_values(net.backend(), rows({0, 1, 2, 3, 4, 5}, kTarget));
  net.blob("selector")->set_values(net.backend(), selector);
  return pass(net);
}

PassResult pass_alone(const std::vector<std::int64_t>& items) {
  const auto net = make_net(unfiltered(items.size()));
  net->blob("data")->set_values(net->backend(), rows(items, kImage));
  net->blob("target")->set_values(net->backend(), rows(items, kTarget));
  return pass(*net);
}

const std::vector<std::vector<std::int64_t>> kSelections{{0, 2, 3}, {0, 1, 2, 3, 4, 5}, {5}, {1, 4},
                                                         {1, 2},    {0, 1, 2, 3, 4}};

TEST_CASE("layers behind a filter compute what they do for the items alone") {
  NetOptions options = net_options();
  options.keep_blobs = GENERATE(false, true);
  const auto net = make_net(filtered(), options);
  CHECK(net->blob("images")->shape() == Shape{kItems, 3, 4, 4});
  for (const auto& items : kSelections) {
    const PassResult found = pass_with(*net, items);
    const PassResult expected = pass_alone(items);
    CHECK(found.loss == Approx(expected.loss).epsilon(1e-5));
    check_close("gradients", found.gradients, expected.gradients);
    CHECK(net->blob("ip")->shape() == Shape{static_cast<std::int64_t>(items.size()), 3});
  }
}

TEST_CASE("a filter that nothing passes leaves an empty top, and the next pass is as ever") {
  const auto net =
      make_net(input("data", "dim: 6 dim: 3") + input("target", "dim: 6 dim: 3") +
               input("selector", "dim: 6") + product("ip", "data") +
               "layer { name: 'f' type: 'Filter' bottom: 'ip' bottom: 'target' bottom: 'selector' "
               "top: 'x' top: 'y' }\n" +
               product("ip2", "x") + in_place("ReLU", "ip2") +
               "layer { name: 'sum' type: 'Eltwise' bottom: 'ip2' bottom: 'y' top: 'z' "
               "loss_weight: 1 }\n");
  net->blob("data")->set_values(net->backend(), rows({0, 1, 2, 3, 4, 5}, 3));
  net->blob("target")->set_values(net->backend(), rows({0, 1, 2, 3, 4, 5}, 3));
  const auto pass_of = [&](const std::vector<float>& selector) {
    net->blob("selector")->set_values(net->backend(), selector);
    return pass(*net);
  };
  const PassResult before = pass_of({0, 1, 1, 0, 0, 0});
  const PassResult none = pass_of({0, 0, 0, 0, 0, 0});
  CHECK(net->blob("z")->shape() == Shape{0, 3});
  CHECK(none.loss == 0.0F);
  CHECK(none.gradients == std::vector<float>(none.gradients.size(), 0.0F));
  const PassResult after = pass_of({0, 1, 1, 0, 0, 0});
  CHECK(after.loss == before.loss);
  CHECK(after.gradients == before.gradients);
}

TEST_CASE("a filter behind a filter, and one whose top is read twice") {
  const std::string text =
      input("data", "dim: 6 dim: 2 dim: 4 dim: 4") + input("target", "dim: 6 dim: 3") +
      input("selector", "dim: 6 dim: 1") + conv("c1", "data", 3) + in_place("ReLU", "c1") +
      "layer { name: 'f' type: 'Filter' bottom: 'c1' bottom: 'target' bottom: 'selector' "
      "top: 'a' top: 'b' }\n"
      "layer { name: 'h' type: 'Filter' bottom: 'selector' bottom: 'selector' top: 's' }\n"
      "layer { name: 'g' type: 'Filter' bottom: 'a' bottom: 'b' bottom: 's' "
      "top: 'images' top: 'targets' }\n"
      "layer { name: 'quiet' type: 'Silence' bottom: 'a' }\n" +
      tail("images", "targets");
  const auto net = make_net(text);
  for (const auto& items : kSelections) {
    check_close("gradients", pass_with(*net, items).gradients, pass_alone(items).gradients);
  }
}

TEST_CASE("a net with a filter can be given another batch") {
  const auto net = make_net(filtered());
  (void)pass_with(*net, {1, 2});
  for (const char* name : {"data", "target", "selector"}) {
    std::vector<std::int64_t> dims = net->blob(name)->shape().dims();
    dims[0] = kItems + 2;
    net->blob(name)->reshape(*Shape::create(dims));
  }
  REQUIRE(net->reshape().has_value());
  CHECK(net->blob("images")->shape() == Shape{kItems + 2, 3, 4, 4});
  net->blob("selector")->set_values(net->backend(), std::vector<float>(kItems + 2, 1.0F));
  REQUIRE(net->forward().has_value());
  CHECK(net->blob("ip")->shape() == Shape{kItems + 2, 3});
}

TEST_CASE("a shape that does not fit the other bottoms is an error of the pass") {
  const auto net =
      make_net(input("data", "dim: 4 dim: 3") + input("other", "dim: 4 dim: 3") +
               input("selector", "dim: 4") +
               "layer { name: 'f' type: 'Filter' bottom: 'data' bottom: 'selector' top: 'x' }\n" +
               layer("sum", "Eltwise", {"x", "other"}));
  net->blob("selector")->set_values(net->backend(), std::vector<float>{1, 0, 1, 1});
  for (int time = 0; time < 2; ++time) {
    const auto passed = net->forward();
    REQUIRE_FALSE(passed.has_value());
    CHECK(passed.error().message.find("layer 'sum' (Eltwise): its bottoms must have one shape") ==
          0);
  }
  net->blob("selector")->set_values(net->backend(), std::vector<float>(4, 1.0F));
  CHECK(net->forward().has_value());
}

TEST_CASE("outputs of another size in each pass have no mean over a test") {
  NetOptions options = net_options(Phase::kTest);
  options.trains = false;
  const auto net = make_net(
      "layer { name: 'fill' type: 'DummyData' top: 'data' top: 'selector' dummy_data_param { "
      "shape { dim: 50 dim: 2 } shape { dim: 50 } data_filler { type: 'constant' } "
      "data_filler { type: 'gaussian' } } }\n"
      "layer { name: 'sign' type: 'Threshold' bottom: 'selector' top: 'sign' }\n"
      "layer { name: 'f' type: 'Filter' bottom: 'data' bottom: 'sign' top: 'x' }\n",
      options);
  const auto tested = run_test(*net, 20);
  REQUIRE_FALSE(tested.has_value());
  CHECK(tested.error().message.find("has no mean") != std::string::npos);
}

TEST_CASE("what a loss weight of a filter's top adds follows its size") {
  const auto net = make_net(
      input("data", "dim: 3 dim: 1") + input("selector", "dim: 3") + product("ip", "data", "", 1) +
      "layer { name: 'f' type: 'Filter' bottom: 'ip' bottom: 'selector' top: 'x' loss_weight: 2 "
      "}\n");
  net->blob("data")->set_values(net->backend(), std::vector<float>{1, 10, 100});
  const float weight = speedo::values_of(net->weights().data(), 1)[0];
  const std::vector<std::vector<float>> selectors{{1, 0, 1}, {0, 0, 0}, {0, 1, 0}, {1, 1, 1}};
  const std::vector<float> sums{101, 0, 10, 111};
  for (std::size_t i = 0; i < sums.size(); ++i) {
    net->blob("selector")->set_values(net->backend(), selectors[i]);
    const PassResult found = pass(*net);
    CHECK(found.loss == Approx(2.0F * weight * sums[i]).margin(1e-5));
    CHECK(found.gradients[0] == Approx(2.0F * sums[i]));
  }
}

}  // namespace
}  // namespace speedo
