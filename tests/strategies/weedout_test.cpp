#include "support/catch.hpp"

#include "models.hpp"
#include "trace.hpp"

namespace speedo {

namespace {

std::unique_ptr<Strategy> with_window(std::uint64_t window) {
  return strategy_of({.name = "weedout", .window = window});
}

}  // namespace

TEST_CASE("weedout: SpeeDO's trace, window 3 and reports 0 1 1 0 2") {
  const auto weedout = with_window(3);
  CHECK(to_text(weedout->on(joined({0, 1, 2}))) == "train 0, train 1, train 2");
  CHECK(to_text(weedout->on(trained(0))) == "merge 0, train 0");
  CHECK(to_text(weedout->on(trained(1))) == "merge 1, train 1");
  CHECK(to_text(weedout->on(trained(1))) == "merge 1, train 1");
  CHECK(to_text(weedout->on(trained(0))) == "merge 0, train 0");
  CHECK(to_text(weedout->on(trained(2))) == "discard 2, train 2");
  CHECK(to_text(weedout->on(trained(2))) == "merge 2, train 2");
}

TEST_CASE("weedout: the ring has at least a place for each worker of the start") {
  const auto weedout = with_window(1);
  weedout->on(joined({0, 1, 2}));
  for (int i = 0; i < 3; ++i) {
    CHECK(to_text(weedout->on(trained(0))) == "merge 0, train 0");
    CHECK(to_text(weedout->on(trained(1))) == "merge 1, train 1");
    CHECK(to_text(weedout->on(trained(2))) == "merge 2, train 2");
  }
}

TEST_CASE("weedout: a newcomer is the oldest of a ring that grew") {
  const auto weedout = with_window(2);
  weedout->on(joined({0, 1}));
  weedout->on(trained(0));
  weedout->on(trained(1));
  CHECK(to_text(weedout->on(joined({2}))) == "train 2");
  SECTION("in time if it is the next to report") {
    CHECK(to_text(weedout->on(trained(2))) == "merge 2, train 2");
  }
  SECTION("too late when another was heard before it") {
    CHECK(to_text(weedout->on(trained(0))) == "merge 0, train 0");
    CHECK(to_text(weedout->on(trained(2))) == "discard 2, train 2");
  }
}

TEST_CASE("weedout: a death removes the oldest entry, whoever's it is") {
  const auto weedout = with_window(3);
  weedout->on(joined({0, 1, 2}));
  weedout->on(trained(0));
  weedout->on(trained(1));
  weedout->on(trained(2));
  CHECK(to_text(weedout->on(left(2))).empty());
  CHECK(to_text(weedout->on(trained(0))) == "discard 0, train 0");
  CHECK(to_text(weedout->on(trained(1))) == "discard 1, train 1");
  CHECK(to_text(weedout->on(trained(0))) == "merge 0, train 0");
}

TEST_CASE("weedout: all die before anybody reports, and it begins again") {
  const auto weedout = with_window(1);
  weedout->on(joined({0, 1}));
  weedout->on(left(0));
  weedout->on(left(1));
  CHECK(to_text(weedout->on(joined({2}))) == "train 2");
  CHECK(to_text(weedout->on(trained(2))) == "merge 2, train 2");
}

TEST_CASE("weedout: after a failed run its worker is in time again") {
  const auto weedout = with_window(2);
  weedout->on(joined({0, 1}));
  weedout->on(trained(0));
  weedout->on(trained(0));
  CHECK(to_text(weedout->on(failed(1))) == "train 1");
  CHECK(to_text(weedout->on(trained(1))) == "merge 1, train 1");
}

TEST_CASE("weedout under random events does what its model says") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t random) {
    const std::uint64_t window = 1 + random % 12;
    return compare(*with_window(window), weedout_model(window), randoms);
  }));
}

TEST_CASE("weedout needs a window of at least 1, and is found by SpeeDO's other name") {
  const auto made = make_strategy({.name = "drop"});
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::kUsage);
  CHECK(made.error().message.find("--weedout") != std::string::npos);
  CHECK(make_strategy({.name = "drop", .window = 1}));
}

}  // namespace speedo
