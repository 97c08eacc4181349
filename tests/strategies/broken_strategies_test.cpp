// The broken strategies are wrong where their names say, and the models notice within 100 runs.

#include "support/broken_strategies.hpp"
#include "support/catch.hpp"

#include "models.hpp"
#include "trace.hpp"

namespace speedo {

namespace {

Randoms randoms_of(std::uint32_t seed) {
  Randoms randoms;
  for (std::uint32_t i = 0; i < 100; ++i) randoms.push_back(seed * 1000 + i);
  return randoms;
}

}  // namespace

TEST_CASE("every broken strategy is noticed within 100 runs, and the right one never") {
  for (const BrokenStrategy& broken : broken_strategies()) {
    INFO(broken.name);
    const StrategyOptions options = usual_options(broken.instead_of);
    int noticed = 0;
    for (std::uint32_t seed = 1; seed <= 100; ++seed) {
      const Randoms randoms = randoms_of(seed);
      if (!compare(*broken.make(options), model_of(options), randoms).empty()) ++noticed;
      CHECK(compare(*strategy_of(options), model_of(options), randoms).empty());
    }
    CHECK(noticed > 0);
  }
}

TEST_CASE("broken strategies are wrong exactly there") {
  const auto of = [](const char* name) {
    for (const BrokenStrategy& each : broken_strategies()) {
      if (each.name == std::string(name)) return make_broken(name, usual_options(each.instead_of));
    }
    return std::unique_ptr<Strategy>();
  };
  SECTION("merge-twice") {
    const auto strategy = of("merge-twice");
    strategy->on(joined({0}));
    for (int i = 0; i < 4; ++i) CHECK(to_text(strategy->on(trained(0))) == "merge 0, train 0");
    CHECK(to_text(strategy->on(trained(0))) == "merge 0, merge 0, train 0");
  }
  SECTION("forget-dead") {
    const auto strategy = of("forget-dead");
    CHECK(to_text(strategy->on(joined({0, 1}))) == "train 0, train 1");
    CHECK(to_text(strategy->on(trained(1))).empty());
    CHECK(to_text(strategy->on(trained(0))) == "average 0 1, train 0, train 1");
    CHECK(to_text(strategy->on(left(1))).empty());
    CHECK(to_text(strategy->on(trained(0))).empty());
  }
  SECTION("lead-off-by-one") {
    const auto strategy = of("lead-off-by-one");
    strategy->on(joined({0, 1}));
    for (int i = 0; i < 2; ++i) CHECK(to_text(strategy->on(trained(0))) == "merge 0, train 0");
    CHECK(to_text(strategy->on(trained(0))) == "merge 0");
  }
  SECTION("advance-off-by-one") {
    const auto strategy = of("advance-off-by-one");
    strategy->on(joined({0, 1}));
    for (int i = 0; i < 2; ++i) CHECK(to_text(strategy->on(trained(0))) == "merge 0, train 0");
    CHECK(to_text(strategy->on(trained(0))) == "merge 0");
  }
  SECTION("merge-the-late") {
    const auto strategy = of("merge-the-late");
    strategy->on(joined({0, 1}));
    for (int i = 0; i < 3; ++i) strategy->on(trained(0));
    CHECK(to_text(strategy->on(trained(1))) == "merge 1, train 1");
  }
  SECTION("average-without-one") {
    const auto strategy = of("average-without-one");
    strategy->on(joined({0, 1, 2}));
    strategy->on(trained(0));
    strategy->on(trained(1));
    CHECK(to_text(strategy->on(trained(2))) ==
          "discard 2, average 0 1, train 0, train 1, train 2");
  }
  SECTION("forget-parked") {
    const auto strategy = of("forget-parked");
    strategy->on(joined({0, 1}));
    strategy->on(trained(0));
    strategy->on(trained(0));
    CHECK(to_text(strategy->on(joined({2}))).empty());
    CHECK(to_text(strategy->on(trained(1))) == "merge 1, train 0, train 1");
  }
}

}  // namespace speedo
