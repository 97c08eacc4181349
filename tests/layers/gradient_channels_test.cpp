// Gradients of the layers of one value or one channel at a time, of those that normalize, and of
// those that cut and reshape, against finite differences; see gradient_test.cpp.

#include <speedo/backend/backend.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "support/catch.hpp"
#include "support/gradient_check.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

TEST_CASE("gradient: BatchNorm") {
  const auto options = GENERATE(as<std::string>(), "", "eps: 0.1", "use_global_stats: true",
                                "use_global_stats: true eps: 0.1 moving_average_fraction: 0.5");
  const std::string text = "type: 'BatchNorm' batch_norm_param { " + options + " }";
  for (const Phase phase : {Phase::kTrain, Phase::kTest}) {
    check_on_all(text, {.bottoms = {{4, 3, 2, 3}}, .low = -2.0F, .high = 2.0F, .phase = phase});
    check_on_all(text, {.bottoms = {{6, 5}}, .low = -2.0F, .high = 2.0F, .phase = phase});
    check_on_all(text, {.bottoms = {{7}}, .low = -2.0F, .high = 2.0F, .phase = phase});
  }
}

TEST_CASE("gradient: Scale") {
  const auto options =
      GENERATE(as<std::string>(), "", "bias_term: true", "axis: 0 bias_term: true",
               "axis: 2 num_axes: -1", "axis: 0 num_axes: -1 bias_term: true",
               "axis: -1 bias_term: true", "axis: 1 num_axes: 2", "num_axes: 0 bias_term: true");
  check_on_all("type: 'Scale' scale_param { " + options + " }", {.bottoms = {{2, 3, 4, 2}}});
}

TEST_CASE("gradient: Scale of two bottoms") {
  const auto bias = GENERATE(as<std::string>(), "", " bias_term: true");
  const auto check = [&](const std::string& options, std::vector<Shape> bottoms) {
    check_on_all("type: 'Scale' scale_param { " + options + bias + " }",
                 {.bottoms = std::move(bottoms)});
  };
  check("", {{2, 3, 4}, {3}});
  check("", {{2, 3}, {3}});
  check("", {{2, 3, 4}, {3, 4}});
  check("axis: 0", {{2, 3, 4}, {2}});
  check("axis: 0", {{2, 3, 4}, {2, 3}});
  check("axis: -1", {{2, 3, 4}, {4}});
  check("axis: 0", {{2, 3, 4}, {2, 3, 4}});
  check("axis: 2", {{2, 3, 4}, Shape()});
}

TEST_CASE("gradient: Bias") {
  const auto options = GENERATE(as<std::string>(), "", "axis: 0", "axis: 2 num_axes: 2", "axis: -1",
                                "axis: 0 num_axes: -1", "num_axes: 0");
  check_on_all("type: 'Bias' bias_param { " + options + " }", {.bottoms = {{2, 3, 4, 2}}});
}

TEST_CASE("gradient: Bias of two bottoms") {
  check_on_all("type: 'Bias'", {.bottoms = {{2, 3, 4}, {3}}});
  check_on_all("type: 'Bias' bias_param { axis: 0 }", {.bottoms = {{2, 3, 4}, {2, 3}}});
  check_on_all("type: 'Bias'", {.bottoms = {{2, 3, 4}, Shape()}});
}

TEST_CASE("gradient: PReLU") {
  const auto options = GENERATE(as<std::string>(), "", "channel_shared: true");
  const std::string text = "type: 'PReLU' prelu_param { " + options + " }";
  check_on_all(text, {.bottoms = {{2, 3, 4, 2}}, .kink_range = 0.02F});
  check_on_all(text, {.bottoms = {{4, 3}}, .kink_range = 0.02F});
}

TEST_CASE("gradient: Sigmoid, TanH") {
  const auto type = GENERATE(as<std::string>(), "Sigmoid", "TanH");
  check_on_all("type: '" + type + "'", {.bottoms = {{2, 3, 4}}, .low = -3.0F, .high = 3.0F});
}

TEST_CASE("gradient: smooth functions of one element") {
  const auto text = GENERATE(as<std::string>(), "type: 'BNLL'", "type: 'Exp'",
                             "type: 'Exp' exp_param { base: 2 scale: -0.5 shift: 0.25 }",
                             "type: 'Log' log_param { shift: 4 }",
                             "type: 'Log' log_param { base: 10 scale: -0.5 shift: 3 }",
                             "type: 'Swish'", "type: 'Swish' swish_param { beta: -1.5 }");
  check_on_all(text, {.bottoms = {{2, 3, 4}}, .low = -2.0F, .high = 2.0F});
}

TEST_CASE("gradient: functions of one element that bend") {
  const auto [text, kink] =
      GENERATE(table<std::string, float>({{"type: 'AbsVal'", 0.0F},
                                          {"type: 'Clip' clip_param { min: -9 max: 0.5 }", 0.5F},
                                          {"type: 'ELU' elu_param { alpha: 0.5 }", 0.0F},
                                          {"type: 'ELU' elu_param { alpha: -0.5 }", 0.0F}}));
  check_on_all(
      text,
      {.bottoms = {{2, 3, 4}}, .low = -2.0F, .high = 2.0F, .kink = kink, .kink_range = 0.02F});
}

TEST_CASE("gradient: Power") {
  const auto options = GENERATE(as<std::string>(), "", "scale: -0.5 shift: 1.5", "power: 2",
                                "power: 2 scale: 0.5 shift: -1", "power: 0 scale: 2 shift: 1",
                                "power: 3 scale: 0 shift: 2", "power: 3", "power: 3 shift: -0.5",
                                "power: 0.37 scale: 0.83 shift: 2.4", "power: -1 shift: 2.1",
                                "power: -2 scale: 0.5 shift: 3", "power: -3 shift: -3");
  check_on_all("type: 'Power' power_param { " + options + " }", {.bottoms = {{2, 3, 4}}});
}

TEST_CASE("gradient: Slice, Reshape") {
  // The gradient check looks at the first top only; the others' gradients are zero.
  check_on_all("type: 'Slice' slice_param { slice_point: 1 }", {.bottoms = {{2, 3, 4}}, .tops = 2});
  check_on_all("type: 'Slice' slice_param { axis: -1 }", {.bottoms = {{2, 3, 4}}, .tops = 2});
  check_on_all("type: 'Slice' slice_param { slice_dim: 0 }", {.bottoms = {{2, 3}}, .tops = 2});
  check_on_all("type: 'Slice'", {.bottoms = {{2, 3}}, .tops = 1});
  check_on_all("type: 'Reshape' reshape_param { shape { dim: 0 dim: -1 } }",
               {.bottoms = {{2, 3, 4}}});
}

}  // namespace
}  // namespace speedo
