#include "support/catch.hpp"

#include "trace.hpp"

namespace speedo {

TEST_CASE("every strategy of the registry is made, and found by its name") {
  CHECK(strategy_registry().size() >= 10);
  for (const StrategyEntry& entry : strategy_registry()) {
    INFO(entry.name);
    CHECK(std::string(entry.summary).size() > 10);
    CHECK(make_strategy(usual_options(entry.name)));
    CHECK(find_strategy(entry.name) == &entry);
  }
}

TEST_CASE("short names mean the same schedules") {
  CHECK(find_strategy("psc") == find_strategy("partial-sync"));
  CHECK(find_strategy("drop") == find_strategy("weedout"));
  CHECK(find_strategy("") == nullptr);
  CHECK(find_strategy("hybrid") == nullptr);
}

TEST_CASE("names bring what workers send") {
  CHECK(find_strategy("async")->update == UpdateSpec{});
  CHECK(find_strategy("easgd")->update.kind == UpdateKind::kElastic);
  CHECK(find_strategy("eamsgd")->update.kind == UpdateKind::kElastic);
  CHECK(find_strategy("sync-easgd")->update.kind == UpdateKind::kElastic);
  CHECK(find_strategy("averaging")->update.steps_per_run == 5);
  CHECK(find_strategy("averaging")->update.updater == UpdaterState::kAverage);
  for (const StrategyEntry& entry : strategy_registry()) {
    const std::string name = entry.name;
    CHECK(entry.rounds == (name == "sync" || name == "sync-easgd" || name == "averaging"));
  }
}

TEST_CASE("an unknown strategy is a usage error that lists the known ones") {
  const auto made = make_strategy({.name = "asink"});
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::kUsage);
  CHECK(made.error().message.find("'asink'") != std::string::npos);
  CHECK(made.error().message.find("async, sync, partial-sync") != std::string::npos);
}

TEST_CASE("hybrid is not a strategy, and the error says what it is") {
  const auto made = make_strategy({.name = "hybrid"});
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::kUsage);
  CHECK(made.error().message.find("--hybrid") != std::string::npos);
}

}  // namespace speedo
