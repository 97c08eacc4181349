// Layers that choose, move and count: values and shapes that Caffe defines.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include <google/protobuf/text_format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/layer_fixture.hpp"

namespace speedo {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> counted(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST_CASE("ArgMax: shapes") {
  struct Case {
    const char* options;
    Shape bottom, top;
  };
  const Case one = GENERATE(values<Case>({
      {"", {3, 4, 2}, {3, 1, 1}},
      {"top_k: 2", {3, 4}, {3, 1, 2}},
      {"top_k: 2 out_max_val: true", {3, 4, 2, 1, 1}, {3, 2, 2, 1, 1}},
      {"", {3}, {3, 1, 1}},
      {"axis: 1 top_k: 2", {3, 4, 2}, {3, 2, 2}},
      {"axis: -1 out_max_val: true", {3, 4}, {3, 1}},
      {"axis: 0", {3}, {1}},
      {"axis: 1", {0, 4}, {0, 1}},
  }));
  CAPTURE(one.options);
  LayerFixture it("type: 'ArgMax' argmax_param { " + std::string(one.options) + " }",
                  test::make_backend(1));
  REQUIRE(it.build({one.bottom}, 1).has_value());
  REQUIRE(it.top(0).shape() == one.top);
  REQUIRE(it.forward().has_value());
}

TEST_CASE("ArgMax: of equal values the larger place comes first, and no NaN wins") {
  const int top_k = GENERATE(1, 2, 3);
  const std::vector<float> places{2, 0, 3}, best{7, 7, 1};
  for (const bool gives_values : {false, true}) {
    LayerFixture it("type: 'ArgMax' argmax_param { axis: 1 top_k: " + std::to_string(top_k) +
                        (gives_values ? " out_max_val: true }" : " }"),
                    test::make_backend(1));
    REQUIRE(it.build({{1, 4, 2}}, 1).has_value());
    it.set_bottom(0, {7, 7, kNan, kNan, 7, 7, 1, 1});
    REQUIRE(it.forward().has_value());
    std::vector<float> expected;
    for (std::size_t k = 0; k < static_cast<std::size_t>(top_k); ++k) {
      expected.insert(expected.end(), 2, gives_values ? best[k] : places[k]);
    }
    REQUIRE(it.top_values(0) == expected);
  }
}

TEST_CASE("ArgMax: without an axis values lie beside their places") {
  LayerFixture it("type: 'ArgMax' argmax_param { top_k: 2 out_max_val: true }",
                  test::make_backend(1));
  REQUIRE(it.build({{2, 2, 2}}, 1).has_value());
  it.set_bottom(0, {1, 4, 3, 2, -1, -4, -3, -2});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == std::vector<float>{1, 2, 4, 3, 0, 3, -1, -2});
}

TEST_CASE("Reduction: of nothing, and to all axes before the one it begins at") {
  const auto reduced = [](const std::string& options, const Shape& bottom) {
    LayerFixture it("type: 'Reduction' reduction_param { " + options + " }", test::make_backend(1));
    REQUIRE(it.build({bottom}, 1).has_value());
    it.set_bottom(0, counted(bottom.count()));
    REQUIRE(it.forward().has_value());
    return std::pair(it.top(0).shape(), it.top_values(0));
  };
  CHECK(reduced("", {2, 3}) == std::pair(Shape{}, std::vector<float>{15}));
  CHECK(reduced("axis: 1 coeff: 2", {2, 3}) == std::pair(Shape{2}, std::vector<float>{6, 24}));
  CHECK(reduced("axis: -1 operation: MEAN", {1, 2, 2}) ==
        std::pair(Shape{1, 2}, std::vector<float>{0.5F, 2.5F}));
  CHECK(reduced("", {0, 3}) == std::pair(Shape{}, std::vector<float>{0}));
  CHECK(reduced("axis: 1", {0, 3}) == std::pair(Shape{0}, std::vector<float>{}));
  CHECK(std::isnan(reduced("operation: MEAN", {0}).second[0]));  // Caffe's 0 / 0
}

TEST_CASE("Crop cuts, and gives no gradient to the blob that says how much") {
  LayerFixture it("type: 'Crop' crop_param { axis: 1 offset: 0 offset: 1 offset: 2 }",
                  test::make_backend(1));
  REQUIRE(it.build({{2, 2, 2, 4}, {7, 1, 1, 2, 9}}, 1).has_value());
  REQUIRE(it.top(0).shape() == Shape{2, 1, 1, 2});
  it.set_bottom(0, counted(32));
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == std::vector<float>{6, 7, 22, 23});
  it.top(0).set_gradients(it.backend(), std::vector<float>{1, 2, 3, 4});
  it.backend().fill(it.bottom(1).count(), 5.0F, it.bottom(1).grad());
  it.backward();
  auto expected = std::vector<float>(32, 0.0F);
  expected[6] = 1, expected[7] = 2, expected[22] = 3, expected[23] = 4;
  CHECK(it.bottom(0).gradients(it.backend()) == expected);
  CHECK(it.bottom(1).gradients(it.backend()) == std::vector<float>(126, 0.0F));
}

TEST_CASE("Tile repeats along its axis") {
  LayerFixture it("type: 'Tile' tile_param { tiles: 2 axis: -2 }", test::make_backend(1));
  REQUIRE(it.build({{2, 1, 2}}, 1).has_value());
  it.set_bottom(0, {1, 2, 3, 4});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top(0).shape() == Shape{2, 2, 2});
  REQUIRE(it.top_values(0) == std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4});
}

TEST_CASE("Tile: any count of tiles, also of nothing") {
  const int tiles = GENERATE(1, 3, 5, 8);
  LayerFixture it("type: 'Tile' tile_param { tiles: " + std::to_string(tiles) + " }",
                  test::make_backend(2));
  REQUIRE(it.build({{2, 3}}, 1).has_value());
  it.set_bottom(0, counted(6));
  REQUIRE(it.forward().has_value());
  std::vector<float> expected;
  for (std::size_t i = 0; i < 6 * static_cast<std::size_t>(tiles); ++i) {
    const std::size_t row = i / (3 * static_cast<std::size_t>(tiles));
    expected.push_back(static_cast<float>(3 * row + i % 3));
  }
  REQUIRE(it.top_values(0) == expected);
  LayerFixture empty("type: 'Tile' tile_param { tiles: 2147483647 }", test::make_backend(1));
  REQUIRE(empty.build({{2, 0}}, 1).has_value());
  REQUIRE(empty.forward().has_value());
  empty.backward();
}

TEST_CASE("Embed looks up rows, and says which number is none") {
  LayerFixture it("type: 'Embed' embed_param { num_output: 2 input_dim: 3 }",
                  test::make_backend(1));
  REQUIRE(it.build({{2, 2}}, 1).has_value());
  REQUIRE(it.top(0).shape() == Shape{2, 2, 2});
  it.parameter(0).set_values(it.backend(), std::vector<float>{1, 2, 3, 4, 5, 6});
  it.parameter(1).set_values(it.backend(), std::vector<float>{0, 10});
  it.set_bottom(0, {2, 0, 0, 1.9F});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == std::vector<float>{5, 16, 1, 12, 1, 12, 3, 14});
  for (const float wrong : {3.0F, -1.0F, 1e30F, kNan}) {
    it.set_bottom(0, {2, wrong, 0, 1});
    const auto refused = it.forward();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::kData);
    CHECK(refused.error().message.find("at index 1 is outside 0..2") != std::string::npos);
  }
}

TEST_CASE("MVN: the top has four axes, and rows of one value become zero") {
  LayerFixture it("type: 'MVN' mvn_param { across_channels: true }", test::make_backend(1));
  REQUIRE(it.build({{2, 4}}, 1).has_value());
  REQUIRE(it.top(0).shape() == Shape{2, 4, 1, 1});
  it.set_bottom(0, {1, 3, 1, 3, 7, 7, 7, 7});
  REQUIRE(it.forward().has_value());
  const auto values = it.top_values(0);
  CHECK(values[0] == Approx(-1.0F));
  CHECK(values[1] == Approx(1.0F));
  CHECK(std::vector<float>(values.begin() + 4, values.end()) == std::vector<float>(4, 0.0F));
}

TEST_CASE("Im2col lays out windows, also over other counts of axes") {
  LayerFixture it("type: 'Im2col' convolution_param { kernel_size: 2 pad: 1 stride: 2 }",
                  test::make_backend(1));
  REQUIRE(it.build({{1, 2, 3}}, 1).has_value());
  REQUIRE(it.top(0).shape() == Shape{1, 4, 2});
  it.set_bottom(0, {1, 2, 3, 4, 5, 6});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == std::vector<float>{0, 2, 1, 3, 0, 5, 4, 6});
  const auto refused = it.reshape({{1, 2, 0}});
  CHECK(refused.has_value());
  LayerFixture deep("type: 'Im2col' convolution_param { kernel_size: 2 axis: 0 }",
                    test::make_backend(1));
  REQUIRE(deep.build({{3, 2, 2, 2}}, 1).has_value());
  REQUIRE(deep.top(0).shape() == Shape{24, 1, 1, 1});
}

TEST_CASE("stochastic pooling hands the gradient to what it drew, the same way each time") {
  LayerFixture it("type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }",
                  test::make_backend(2));
  REQUIRE(it.build({{2, 3, 5, 4}}, 1).has_value());
  REQUIRE(it.top(0).shape() == Shape{2, 3, 3, 2});
  it.set_bottom(0, counted(120));
  REQUIRE(it.forward().has_value());
  const auto drawn = it.top_values(0);
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == drawn);
  it.top(0).set_gradients(it.backend(), std::vector<float>(36, 2.0F));
  it.backward();
  std::vector<float> expected(120, 0.0F);
  for (const float value : drawn) expected[static_cast<std::size_t>(value)] = 2.0F;
  CHECK(it.bottom(0).gradients(it.backend()) == expected);
}

TEST_CASE("MemoryData: batches of what it is given, from the beginning again") {
  caffe::NetParameter message;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "layer { name: 'given' type: 'MemoryData' top: 'data' top: 'label' "
      "memory_data_param { batch_size: 2 channels: 1 height: 1 width: 3 } }",
      &message));
  const auto backend = test::make_backend(1);
  NetOptions options;
  options.backend = backend.get();
  options.keep_blobs = true;
  const auto made = Net::create(message, options);
  REQUIRE(made.has_value());
  Net& net = **made;
  REQUIRE(net.blob("data")->shape() == Shape{2, 1, 1, 3});
  REQUIRE(net.blob("label")->shape() == Shape{2, 1, 1, 1});
  CHECK(net.forward().error().message.find("layer 'given' (MemoryData): no arrays are given") == 0);
  const auto data = counted(12), labels = counted(4);
  REQUIRE(net.give_arrays("given", data, labels).has_value());
  for (const float first : {0.0F, 6.0F, 0.0F}) {
    REQUIRE(net.forward().has_value());
    CHECK(net.blob("data")->values(*backend)[0] == first);
    CHECK(net.blob("label")->values(*backend)[1] == first / 3.0F + 1.0F);
  }
  net.set_batch_span({.first = 3, .count = 1, .next = 0});
  REQUIRE(net.forward().has_value());
  CHECK(net.blob("data")->values(*backend)[0] == 6.0F);

  const auto refused = [&](const std::string& layer, std::span<const float> values,
                           std::span<const float> of) {
    const auto done = net.give_arrays(layer, values, of);
    REQUIRE_FALSE(done.has_value());
    return done.error().message;
  };
  CHECK(refused("gven", data, labels).find("did you mean 'given'") != std::string::npos);
  CHECK(refused("given", counted(9), counted(3)).find("3 items, it needs a multiple") !=
        std::string::npos);
  CHECK(refused("given", {}, {}).find("0 items") != std::string::npos);
  CHECK(refused("given", counted(13), labels).find("13 values for 4 items, it needs 3") !=
        std::string::npos);
}

TEST_CASE("a layer that takes no arrays refuses them") {
  LayerFixture it("type: 'ReLU'", test::make_backend(1));
  REQUIRE(it.build({{2}}, 1).has_value());
  const auto refused = it.layer().give_arrays({}, {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("layer 'it' (ReLU): takes no arrays") == 0);
}

TEST_CASE("layers shape anew when their bottoms change") {
  struct Case {
    const char* text;
    std::vector<Shape> before, after;
    Shape top;
  };
  const Case one = GENERATE(values<Case>({
      {"type: 'Reduction' reduction_param { axis: 1 }", {{2, 3}}, {{5, 7, 2}}, {5}},
      {"type: 'ArgMax' argmax_param { top_k: 2 }", {{2, 3}}, {{4, 9}}, {4, 1, 2}},
      {"type: 'Tile' tile_param { tiles: 2 }", {{2, 3}}, {{4, 9}}, {4, 18}},
      {"type: 'Embed' embed_param { num_output: 2 input_dim: 3 }", {{2}}, {{4, 3}}, {4, 3, 2}},
      {"type: 'Crop'", {{2, 3, 4, 4}, {1, 1, 2, 2}}, {{1, 3, 6, 5}, {1, 1, 4, 5}}, {1, 3, 4, 5}},
      {"type: 'MVN'", {{2, 3, 4, 4}}, {{1, 5, 2, 2}}, {1, 5, 2, 2}},
      {"type: 'Im2col' convolution_param { kernel_size: 2 }",
       {{1, 2, 3, 3}},
       {{2, 1, 4, 2}},
       {2, 4, 3, 1}},
      {"type: 'HingeLoss'", {{2, 3}, {2}}, {{4, 5}, {4}}, {}},
      {"type: 'SigmoidCrossEntropyLoss'", {{2, 3}, {2, 3}}, {{4, 5}, {4, 5}}, {}},
      {"type: 'MultinomialLogisticLoss'", {{2, 3}, {2}}, {{4, 5}, {4}}, {}},
      {"type: 'ContrastiveLoss'", {{2, 3}, {2, 3}, {2}}, {{4, 5}, {4, 5}, {4}}, {}},
      {"type: 'InfogainLoss'", {{2, 3}, {2}, {3, 3}}, {{4, 5}, {4}, {5, 5}}, {}},
      {"type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 }",
       {{1, 1, 2, 2}},
       {{2, 3, 4, 5}},
       {2, 3, 3, 4}},
  }));
  CAPTURE(one.text);
  LayerFixture it(one.text, test::make_backend(2));
  REQUIRE(it.build(one.before, 1).has_value());
  REQUIRE(it.forward().has_value());
  it.backward();
  REQUIRE(it.reshape(one.after).has_value());
  REQUIRE(it.top(0).shape() == one.top);
  REQUIRE(it.forward().has_value());
  it.backward();
  for (const float value : it.top_values(0)) REQUIRE(std::isfinite(value));
}

}  // namespace
}  // namespace speedo
