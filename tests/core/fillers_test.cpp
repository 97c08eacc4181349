#include "core/fillers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

caffe::FillerParameter filler_of(const std::string& text) {
  caffe::FillerParameter filler;
  REQUIRE(parse_prototxt(text, "filler", filler).has_value());
  return filler;
}

std::vector<float> filled(const std::string& text, const Shape& shape, std::uint64_t seed = 1) {
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  Random random(test::varied(seed));
  const auto result = fill(filler_of(text), shape, random, values);
  INFO((result ? "" : result.error().message));
  REQUIRE(result.has_value());
  return values;
}

struct Moments {
  double mean = 0.0, deviation = 0.0;
};

Moments moments(const std::vector<float>& values) {
  const auto n = static_cast<double>(values.size());
  Moments result;
  for (const float value : values) {
    result.mean += value / n;
  }
  for (const float value : values) {
    result.deviation += (value - result.mean) * (value - result.mean) / n;
  }
  result.deviation = std::sqrt(result.deviation);
  return result;
}

double largest_value(const std::vector<float>& values) {
  return *std::max_element(values.begin(), values.end());
}

// 30 outputs, 20 x 5 x 5 inputs: fan in 500, fan out 750.
const Shape kKernel{30, 20, 5, 5};

TEST_CASE("constant and uniform", "[fillers]") {
  CHECK(filled("type: 'constant' value: 2.5", {3}) == std::vector<float>(3, 2.5F));
  CHECK(filled(" ", {2}) == std::vector<float>(2, 0.0F));
  const auto values = filled("type: 'uniform' min: -1 max: 3", {20000});
  CHECK(moments(values).mean == Approx(1.0).margin(0.05));
  CHECK(moments(values).deviation == Approx(4 / std::sqrt(12.0)).epsilon(0.02));
  CHECK(largest_value(values) < 3.0);
}

TEST_CASE("gaussian, dense and sparse", "[fillers]") {
  const auto dense = filled("type: 'gaussian' mean: 0.5 std: 0.1", {20000});
  CHECK(moments(dense).mean == Approx(0.5).margin(0.005));
  CHECK(moments(dense).deviation == Approx(0.1).epsilon(0.03));
  const auto thin = filled("type: 'gaussian' std: 1 sparse: 10", {100, 500});
  const auto nonzero = std::count_if(thin.begin(), thin.end(), [](float v) { return v != 0.0F; });
  CHECK(static_cast<double>(nonzero) == Approx(5000).epsilon(0.08));
  CHECK(filled("type: 'gaussian' sparse: 0", {10, 4}) == std::vector<float>(40, 0.0F));
}

TEST_CASE("xavier and msra scale by the chosen fan", "[fillers]") {
  const std::vector<std::pair<std::string, double>> fans = {
      {"", 500.0}, {"variance_norm: FAN_OUT", 750.0}, {"variance_norm: AVERAGE", 625.0}};
  for (const auto& [norm, fan] : fans) {
    INFO(norm);
    const auto xavier = filled("type: 'xavier' " + norm, kKernel);
    CHECK(largest_value(xavier) == Approx(std::sqrt(3 / fan)).epsilon(0.01));
    CHECK(moments(xavier).deviation == Approx(std::sqrt(1 / fan)).epsilon(0.03));
    const auto msra = filled("type: 'msra' " + norm, kKernel);
    CHECK(moments(msra).deviation == Approx(std::sqrt(2 / fan)).epsilon(0.03));
  }
  // Without a second axis there is one input, so fan out is the whole count.
  CHECK(largest_value(filled("type: 'xavier' variance_norm: FAN_OUT", {10000})) ==
        Approx(std::sqrt(3.0 / 10000)).epsilon(0.01));
}

TEST_CASE("positive_unitball rows are positive and sum to one", "[fillers]") {
  const auto values = filled("type: 'positive_unitball'", {4, 25});
  for (int row = 0; row < 4; ++row) {
    CHECK(std::accumulate(values.begin() + row * 25, values.begin() + (row + 1) * 25, 0.0) ==
          Approx(1.0));
  }
  CHECK(*std::min_element(values.begin(), values.end()) >= 0.0F);
}

TEST_CASE("bilinear is the interpolation kernel", "[fillers]") {
  const auto four = filled("type: 'bilinear'", {2, 1, 4, 4});
  const std::vector<float> side = {0.25F, 0.75F, 0.75F, 0.25F};
  for (std::size_t i = 0; i < four.size(); ++i) {
    CHECK(four[i] == Approx(side[i % 4] * side[i / 4 % 4]));
  }
  const auto three = filled("type: 'bilinear'", {1, 1, 3, 3});
  CHECK(three[4] == Approx(1.0));
  CHECK(three[0] == Approx(0.25));
}

TEST_CASE("the same seed gives the same values, another seed others", "[fillers]") {
  const std::string type = GENERATE(as<std::string>(), "uniform", "gaussian", "xavier", "msra");
  const std::string text = "type: '" + type + "'";
  CHECK(filled(text, kKernel, 7) == filled(text, kKernel, 7));
  CHECK(filled(text, kKernel, 7) != filled(text, kKernel, 8));
}

TEST_CASE("an empty shape is filled with nothing", "[fillers]") {
  for (const char* type : {"constant", "xavier", "msra", "positive_unitball", "gaussian"}) {
    CHECK(filled("type: '" + std::string(type) + "'", {0, 3}).empty());
  }
}

TEST_CASE("impossible fillers are errors", "[fillers]") {
  const std::string text =
      GENERATE(as<std::string>(), "type: 'nonsense'", "type: 'uniform' min: 1 max: 0",
               "type: 'gaussian' std: -1", "type: 'gaussian' std: nan",
               "type: 'gaussian' sparse: -2", "type: 'constant' sparse: 3", "type: 'bilinear'");
  INFO(text);
  std::vector<float> values(6);
  Random random(1);
  const auto result = fill(filler_of(text), {2, 3}, random, values);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == ErrorCode::kConfig);
  CHECK(result.error().message.find("filler") != std::string::npos);
}

}  // namespace
}  // namespace speedo
