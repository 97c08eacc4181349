// Slice, Reshape, Power and the layers with factors: values that Caffe defines.

#include <cmath>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/layer_fixture.hpp"

namespace speedo {
namespace {

TEST_CASE("Reshape: 0 copies, -1 takes what is left, others are replaced") {
  struct Case {
    const char* options;
    Shape bottom, top;
  };
  const Case one = GENERATE(values<Case>({
      {"shape { dim: 0 dim: -1 }", {2, 8}, {2, 8}},
      {"shape { dim: 0 dim: -1 }", {2, 3, 4}, {2, 12}},
      {"shape { dim: -1 }", {2, 3, 4}, {24}},
      {"shape { dim: -1 dim: 0 dim: 2 }", {2, 3, 4}, {4, 3, 2}},
      {"shape { dim: 2 dim: 2 dim: 4 }", {2, 8}, {2, 2, 4}},
      {"shape { dim: 2 dim: 4 } axis: 1", {2, 8}, {2, 2, 4}},
      {"shape { dim: 1 dim: 1 } axis: -1 num_axes: 0", {8, 2}, {8, 2, 1, 1}},
      {"shape { dim: 2 dim: 4 } axis: -2", {3, 8}, {3, 2, 4}},
      {"shape { dim: 1 } axis: 0 num_axes: 0", {2, 8}, {1, 2, 8}},
      {"shape { dim: 1 } axis: -1", {2, 8}, {2, 8, 1}},
      {"shape { dim: 6 } axis: 0 num_axes: 2", {2, 3, 4}, {6, 4}},
      {"", {1, 1}, {}},
      {"axis: 1", {5}, {5}},
      {"shape { dim: -1 } axis: 1 num_axes: 1", {2, 3, 4}, {2, 3, 4}},
      {"shape { dim: 0 dim: 5 }", {0, 3}, {0, 5}},
  }));
  CAPTURE(one.options);
  LayerFixture it("type: 'Reshape' reshape_param { " + std::string(one.options) + " }",
                  test::make_backend(1));
  const auto built = it.build({one.bottom}, 1);
  INFO((built ? std::string() : built.error().message));
  REQUIRE(built.has_value());
  REQUIRE(it.top(0).shape() == one.top);
  REQUIRE(it.top(0).data() == it.bottom(0).data());
  REQUIRE(it.top(0).grad() == it.bottom(0).grad());
}

TEST_CASE("Flatten joins the axes between two; without any it puts in one of 1") {
  struct Case {
    const char* options;
    Shape bottom, top;
  };
  const Case one = GENERATE(values<Case>({
      {"", {2, 3, 4}, {2, 12}},
      {"axis: 0", {2, 3, 4}, {24}},
      {"axis: 1 end_axis: 1", {2, 3, 4}, {2, 3, 4}},
      {"axis: 2 end_axis: 1", {2, 3, 4}, {2, 3, 1, 4}},
      {"axis: 1 end_axis: -3", {2, 3, 4}, {2, 1, 3, 4}},
  }));
  CAPTURE(one.options);
  LayerFixture it("type: 'Flatten' flatten_param { " + std::string(one.options) + " }",
                  test::make_backend(1));
  REQUIRE(it.build({one.bottom}, 1).has_value());
  REQUIRE(it.top(0).shape() == one.top);
  REQUIRE(it.top(0).data() == it.bottom(0).data());
}

TEST_CASE("Slice cuts, and puts gradients together") {
  LayerFixture it("type: 'Slice' slice_param { slice_point: 1 slice_point: 3 }",
                  test::make_backend(1));
  REQUIRE(it.build({{2, 4}}, 3).has_value());
  it.set_bottom(0, {1, 2, 3, 4, 5, 6, 7, 8});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == std::vector<float>{1, 5});
  REQUIRE(it.top_values(1) == std::vector<float>{2, 3, 6, 7});
  REQUIRE(it.top_values(2) == std::vector<float>{4, 8});
  for (std::size_t top = 0; top < 3; ++top) {
    std::vector<float> gradients = it.top_values(top);
    for (float& gradient : gradients) gradient *= 10.0F;
    it.top(top).set_gradients(it.backend(), gradients);
  }
  it.backward();
  REQUIRE(it.bottom(0).gradients(it.backend()) ==
          std::vector<float>{10, 20, 30, 40, 50, 60, 70, 80});
}

TEST_CASE("a Slice into one shares memory") {
  LayerFixture it("type: 'Slice'", test::make_backend(1));
  REQUIRE(it.build({{2, 3}}, 1).has_value());
  REQUIRE(it.top(0).data() == it.bottom(0).data());
  REQUIRE(it.top(0).grad() == it.bottom(0).grad());
}

TEST_CASE("Power: corner cases") {
  struct Case {
    const char* options;
    float x, y, slope;
  };
  const Case one = GENERATE(values<Case>({
      {"power: 3", -2.0F, -8.0F, 12.0F},
      {"power: 3", 0.0F, 0.0F, 0.0F},
      {"power: 2 shift: 1", -1.0F, 0.0F, 0.0F},
      {"power: -1", -4.0F, -0.25F, -0.0625F},
      {"power: 0", -3.0F, 1.0F, 0.0F},
      {"power: 0", 0.0F, 1.0F, 0.0F},
      {"power: 3 scale: 0 shift: -2", 7.0F, -8.0F, 0.0F},
      {"power: 0 scale: 0 shift: 0", 7.0F, 1.0F, 0.0F},
      {"scale: -0.5 shift: 1.5", 7.0F, -2.0F, -0.5F},
  }));
  CAPTURE(one.options, one.x);
  LayerFixture it("type: 'Power' power_param { " + std::string(one.options) + " }",
                  test::make_backend(1));
  REQUIRE(it.build({{1, 5}}, 1).has_value());
  it.set_bottom(0, std::vector<float>(5, one.x));
  REQUIRE(it.forward().has_value());
  it.top(0).set_gradients(it.backend(), std::vector<float>(5, 2.0F));
  it.backward();
  for (const float y : it.top_values(0)) CHECK(y == Approx(one.y));
  for (const float gradient : it.bottom(0).gradients(it.backend())) {
    CHECK(gradient == Approx(2.0F * one.slope));
  }
}

TEST_CASE("Power: a root of a negative number is not a number") {
  LayerFixture it("type: 'Power' power_param { power: 0.5 }", test::make_backend(1));
  REQUIRE(it.build({{4}}, 1).has_value());
  it.set_bottom(0, {-1, 4, -4, 9});
  REQUIRE(it.forward().has_value());
  const std::vector<float> roots = it.top_values(0);
  CHECK(std::isnan(roots[0]));
  CHECK(roots[1] == Approx(2.0F));
  CHECK(std::isnan(roots[2]));
  CHECK(roots[3] == Approx(3.0F));
}

TEST_CASE("without fillers a Scale begins as 1, a Bias as 0, PReLU's slopes as a quarter") {
  const auto first_values = [](const std::string& text) {
    LayerFixture it(text, test::make_backend(1));
    REQUIRE(it.build({{2, 3, 4}}, 1).has_value());
    std::vector<float> values;
    for (const ParameterRequest& request : it.layer().parameter_requests()) {
      REQUIRE(request.filler != nullptr);
      REQUIRE(request.filler->type() == "constant");
      values.push_back(request.filler->value());
    }
    return values;
  };
  CHECK(first_values("type: 'Scale' scale_param { bias_term: true }") ==
        std::vector<float>{1.0F, 0.0F});
  CHECK(first_values("type: 'Scale' scale_param { filler { } }") == std::vector<float>{0.0F});
  CHECK(first_values("type: 'Bias'") == std::vector<float>{0.0F});
  CHECK(first_values("type: 'PReLU'") == std::vector<float>{0.25F});
  CHECK(first_values("type: 'PReLU' prelu_param { filler { value: 0.5 } }") ==
        std::vector<float>{0.5F});
}

TEST_CASE("the shapes of factors are the bottom's axes from `axis` on") {
  const auto shape_of = [](const std::string& text, std::size_t parameter) {
    LayerFixture it(text, test::make_backend(1));
    REQUIRE(it.build({{2, 3, 4, 5}}, 1).has_value());
    return it.layer().parameter_requests().at(parameter).shape;
  };
  CHECK(shape_of("type: 'Scale'", 0) == Shape{3});
  CHECK(shape_of("type: 'Scale' scale_param { axis: 2 num_axes: -1 bias_term: true }", 1) ==
        Shape{4, 5});
  CHECK(shape_of("type: 'Scale' scale_param { num_axes: 0 }", 0) == Shape());
  CHECK(shape_of("type: 'Bias' bias_param { axis: -4 num_axes: 2 }", 0) == Shape{2, 3});
  CHECK(shape_of("type: 'PReLU'", 0) == Shape{3});
  CHECK(shape_of("type: 'PReLU' prelu_param { channel_shared: true }", 0) == Shape());
}

}  // namespace
}  // namespace speedo
