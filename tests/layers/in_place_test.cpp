// Layers that may work in place give there what they give beside, values and gradients.

#include <speedo/backend/backend.hpp>
#include <speedo/base/random.hpp>

#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/layer_fixture.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

struct LayerOutcome {
  std::vector<float> top, bottom_grad, parameters, parameter_grads;
};

void append(const std::vector<float>& values, std::vector<float>& target) {
  target.insert(target.end(), values.begin(), values.end());
}

LayerOutcome run(const std::string& text, Phase phase, bool in_place) {
  LayerFixture it(text, test::make_backend(2), phase);
  const auto built = it.build({{3, 4, 2, 3}}, 1, in_place);
  INFO((built ? std::string() : built.error().message));
  REQUIRE(built.has_value());
  Random random(test::varied(11));
  const auto draw = [&](const Tensor& tensor, float low, float high) {
    std::vector<float> values(static_cast<std::size_t>(tensor.count()));
    for (float& value : values) value = random.uniform(low, high);
    return values;
  };
  Backend& backend = it.backend();
  for (std::size_t p = 0; p < it.parameter_count(); ++p) {
    it.parameter(p).set_values(backend, draw(it.parameter(p), 0.5F, 1.5F));
  }
  LayerOutcome outcome;
  it.bottom(0).set_values(backend, draw(it.bottom(0), -2.0F, 2.0F));
  REQUIRE(it.forward().has_value());
  outcome.top = it.top_values(0);
  it.top(0).set_gradients(backend, draw(it.top(0), -1.0F, 1.0F));
  it.backward();
  outcome.bottom_grad = it.bottom(0).gradients(backend);
  for (std::size_t p = 0; p < it.parameter_count(); ++p) {
    append(it.parameter(p).values(backend), outcome.parameters);
    append(it.parameter(p).gradients(backend), outcome.parameter_grads);
  }
  return outcome;
}

TEST_CASE("what is computed in place is what is computed beside") {
  const auto text = GENERATE(
      as<std::string>(), "type: 'BatchNorm'",
      "type: 'BatchNorm' batch_norm_param { use_global_stats: true }", "type: 'Scale'",
      "type: 'Scale' scale_param { bias_term: true }",
      "type: 'Scale' scale_param { axis: 2 num_axes: -1 bias_term: true }", "type: 'Bias'",
      "type: 'Bias' bias_param { axis: 0 }", "type: 'PReLU'", "type: 'MVN'",
      "type: 'MVN' mvn_param { across_channels: true normalize_variance: false }",
      "type: 'PReLU' prelu_param { channel_shared: true }", "type: 'Sigmoid'", "type: 'TanH'",
      "type: 'AbsVal'", "type: 'BNLL'", "type: 'Clip' clip_param { min: -0.5 max: 0.25 }",
      "type: 'ELU'", "type: 'ELU' elu_param { alpha: -0.5 }", "type: 'Exp'",
      "type: 'Log' log_param { shift: 3 }", "type: 'Swish'", "type: 'Power'",
      "type: 'Power' power_param { scale: 0.5 shift: -1 }",
      "type: 'Power' power_param { power: 2 scale: 0.5 shift: -1 }",
      "type: 'Power' power_param { power: -1 shift: 3 }", "type: 'Power' power_param { power: 3 }",
      "type: 'Power' power_param { power: 0 }",
      "type: 'Power' power_param { power: 2 scale: 0 shift: 3 }");
  CAPTURE(text);
  for (const Phase phase : {Phase::kTrain, Phase::kTest}) {
    const LayerOutcome beside = run(text, phase, false);
    const LayerOutcome in_place = run(text, phase, true);
    CHECK(in_place.top == beside.top);
    CHECK(in_place.bottom_grad == beside.bottom_grad);
    CHECK(in_place.parameters == beside.parameters);
    CHECK(in_place.parameter_grads == beside.parameter_grads);
  }
}

TEST_CASE("a Scale and a Bias by a second bottom work in place, too") {
  for (const std::string type : {"Scale", "Bias"}) {
    LayerFixture beside("type: '" + type + "'", test::make_backend(1));
    LayerFixture in_place("type: '" + type + "'", test::make_backend(1));
    REQUIRE(beside.build({{2, 3, 2}, {3}}, 1).has_value());
    REQUIRE(in_place.build({{2, 3, 2}, {3}}, 1, true).has_value());
    for (LayerFixture* it : {&beside, &in_place}) {
      it->set_bottom(0, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
      it->set_bottom(1, {2, -1, 0.5F});
      REQUIRE(it->forward().has_value());
      it->top(0).set_gradients(it->backend(),
                               std::vector<float>{-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6});
      it->backward();
    }
    CHECK(in_place.top_values(0) == beside.top_values(0));
    for (std::size_t b = 0; b < 2; ++b) {
      CHECK(in_place.bottom(b).gradients(in_place.backend()) ==
            beside.bottom(b).gradients(beside.backend()));
    }
  }
}

}  // namespace
}  // namespace speedo
