#include "measure/state_forecast.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

TEST_CASE("A worker's state is its histories, its own weights, and what a codec left out") {
  const auto forecast = forecast_states(1000);
  INFO((forecast ? "" : forecast.error().message));
  REQUIRE(forecast);
  REQUIRE(forecast->solvers.size() == 6);
  for (const auto& each : forecast->solvers) {
    INFO(each.type);
    const std::int64_t histories = each.type.starts_with("Ada") && each.type != "AdaGrad" ? 2 : 1;
    CHECK(each.full_delta == histories * 1000);
    CHECK(each.elastic == (1 + histories) * 1000);
    CHECK(each.gradient_only == 0);
  }
  CHECK(forecast->codec_residual == 1000);
  const std::string text = to_text(*forecast);
  CHECK(text.find("AdaDelta, Adam: ") != std::string::npos);
  CHECK(text.find("SGD, Nesterov, AdaGrad, RMSProp: ") != std::string::npos);
}

}  // namespace
}  // namespace speedo
