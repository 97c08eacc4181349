#include "support/catch.hpp"

#include "trace.hpp"

namespace speedo {

TEST_CASE("every strategy of the registry is made, or says that it is not built yet") {
  for (const StrategyEntry& entry : strategy_registry()) {
    INFO(entry.name);
    CHECK(std::string(entry.summary).size() > 10);
    StrategyOptions options;
    options.name = entry.name;
    const auto made = make_strategy(options);
    CHECK(made.has_value() == (entry.make != nullptr));
    if (made) continue;
    CHECK(made.error().code == ErrorCode::kUnsupported);
    CHECK(made.error().message.find("not built yet") != std::string::npos);
    CHECK(made.error().message.find(entry.name) != std::string::npos);
  }
}

TEST_CASE("an unknown strategy is a usage error that lists the known ones") {
  StrategyOptions options;
  options.name = "asink";
  const auto made = make_strategy(options);
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::kUsage);
  CHECK(made.error().message.find("'asink'") != std::string::npos);
  CHECK(made.error().message.find("async, sync, partial-sync") != std::string::npos);
}

}  // namespace speedo
