// BatchNorm's statistics: Caffe's rules for what a pass uses and what it keeps.

#include <cmath>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/layer_fixture.hpp"

#include <speedo/core/net.hpp>

namespace speedo {
namespace {

// Channel 0: mean 2.5, variance 1.25; channel 1: mean 0, variance 4.
const std::vector<float> kValues{1, 2, -2, 2, 3, 4, 2, -2};
const Shape kShape{2, 2, 2};

void expect(LayerFixture& it, const Tensor& tensor, const std::vector<double>& values) {
  const std::vector<float> found = tensor.values(it.backend());
  REQUIRE(found.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(static_cast<double>(found[i]) == Approx(values[i]).epsilon(1e-6).margin(1e-7));
  }
}

TEST_CASE("each pass that trains adds to the running statistics") {
  LayerFixture it("type: 'BatchNorm' batch_norm_param { moving_average_fraction: 0.5 eps: 0 }",
                  test::make_backend(1));
  REQUIRE(it.build({kShape}, 1).has_value());
  it.set_bottom(0, kValues);
  REQUIRE(it.forward().has_value());
  const double deviation = std::sqrt(1.25);
  expect(it, it.top(0),
         {-1.5 / deviation, -0.5 / deviation, -1, 1,  //
          0.5 / deviation, 1.5 / deviation, 1, -1});
  // The variance kept is the unbiased one: 4/3 of the batch's.
  expect(it, it.parameter(0), {2.5, 0});
  expect(it, it.parameter(1), {5.0 / 3.0, 16.0 / 3.0});
  expect(it, it.parameter(2), {1});
  REQUIRE(it.forward().has_value());
  expect(it, it.parameter(0), {3.75, 0});
  expect(it, it.parameter(1), {2.5, 8});
  expect(it, it.parameter(2), {1.5});
}

TEST_CASE("one value a channel keeps its variance of zero") {
  LayerFixture it("type: 'BatchNorm'", test::make_backend(1));
  REQUIRE(it.build({{1, 3}}, 1).has_value());
  it.set_bottom(0, {5, -1, 0});
  REQUIRE(it.forward().has_value());
  expect(it, it.top(0), {0, 0, 0});
  expect(it, it.parameter(0), {5, -1, 0});
  expect(it, it.parameter(1), {0, 0, 0});
}

TEST_CASE("a pass that tests uses the running statistics and keeps them") {
  LayerFixture it("type: 'BatchNorm' batch_norm_param { eps: 0 }", test::make_backend(1),
                  Phase::kTest);
  REQUIRE(it.build({kShape}, 1).has_value());
  it.set_bottom(0, kValues);
  // Means 2 and 1, variances 4 and 16.
  it.parameter(0).set_values(it.backend(), std::vector<float>{4, 2});
  it.parameter(1).set_values(it.backend(), std::vector<float>{8, 32});
  it.parameter(2).set_values(it.backend(), std::vector<float>{2});
  REQUIRE(it.forward().has_value());
  expect(it, it.top(0), {-0.5, 0, -0.75, 0.25, 0.5, 1, 0.25, -0.75});
  expect(it, it.parameter(0), {4, 2});
  expect(it, it.parameter(2), {2});
}

TEST_CASE("use_global_stats goes before the phase") {
  const auto weight_after = [](const std::string& options, Phase phase) {
    LayerFixture it("type: 'BatchNorm' batch_norm_param { " + options + " }", test::make_backend(1),
                    phase);
    REQUIRE(it.build({kShape}, 1).has_value());
    it.set_bottom(0, kValues);
    REQUIRE(it.forward().has_value());
    return it.parameter(2).values(it.backend())[0];
  };
  CHECK(weight_after("", Phase::kTrain) == 1.0F);
  CHECK(weight_after("", Phase::kTest) == 0.0F);
  CHECK(weight_after("use_global_stats: true", Phase::kTrain) == 0.0F);
  CHECK(weight_after("use_global_stats: false", Phase::kTest) == 1.0F);
}

TEST_CASE("statistics that nothing was added to count as zeros") {
  LayerFixture it("type: 'BatchNorm' batch_norm_param { eps: 0.25 }", test::make_backend(1),
                  Phase::kTest);
  REQUIRE(it.build({kShape}, 1).has_value());
  it.set_bottom(0, kValues);
  it.parameter(0).set_values(it.backend(), std::vector<float>{3, 0});
  REQUIRE(it.forward().has_value());
  expect(it, it.top(0), {2, 4, -4, 4, 6, 8, 4, -4});
}

caffe::NetParameter net_with(const std::string& param) {
  auto net = parse_net_prototxt(
      "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 2 dim: 3 } } }"
      "layer { name: 'bn' type: 'BatchNorm' bottom: 'data' top: 'bn' " +
          param + " }",
      "net");
  REQUIRE(net.has_value());
  return *net;
}

TEST_CASE("no solver changes the statistics, and weight files say so") {
  const auto backend = test::make_backend(1);
  NetOptions options;
  options.backend = backend.get();
  for (const std::string param :
       {"", "param { lr_mult: 0 }", "param { lr_mult: 0 decay_mult: 0 }"}) {
    const auto net = Net::create(net_with(param), options);
    REQUIRE(net.has_value());
    REQUIRE((*net)->layout().slots().size() == 3);
    for (const ParameterSlot& slot : (*net)->layout().slots()) {
      CHECK(slot.is_statistic);
      CHECK(slot.lr_mult == 0.0F);
    }
    caffe::NetParameter file;
    (*net)->to_proto(file, false);
    REQUIRE(file.layer(1).param_size() == 3);
    for (const caffe::ParamSpec& spec : file.layer(1).param()) CHECK(spec.lr_mult() == 0.0F);
    CHECK(file.layer(1).blobs_size() == 3);
  }
  const auto refused = Net::create(net_with("param { } param { lr_mult: 1 }"), options);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kConfig);
  CHECK_THAT(refused.error().message,
             Catch::StartsWith("layer 'bn' (BatchNorm): parameter 0 is a statistic that no solver "
                               "changes, but its lr_mult is 1"));
}

}  // namespace
}  // namespace speedo
