#include "support/catch.hpp"

#include "models.hpp"
#include "trace.hpp"

namespace speedo {

namespace {

std::unique_ptr<Strategy> with_advance(std::uint64_t max_advance) {
  return strategy_of({.name = "partial-sync", .max_advance = max_advance});
}

}  // namespace

TEST_CASE("partial-sync: SpeeDO's trace, three workers and maxAdvance 2") {
  const auto psc = with_advance(2);
  CHECK(to_text(psc->on(joined({0, 1, 2}))) == "train 0, train 1, train 2");
  CHECK(to_text(psc->on(trained(0))) == "merge 0, train 0");
  CHECK(to_text(psc->on(trained(0))) == "merge 0");
  CHECK(to_text(psc->on(trained(1))) == "merge 1");
  CHECK(to_text(psc->on(trained(2))) == "merge 2, train 0, train 1, train 2");
}

TEST_CASE("partial-sync: after a catch-up the counters are equal again") {
  const auto psc = with_advance(2);
  psc->on(joined({0, 1}));
  for (int round = 0; round < 3; ++round) {
    CHECK(to_text(psc->on(trained(1))) == "merge 1, train 1");
    CHECK(to_text(psc->on(trained(1))) == "merge 1");
    CHECK(to_text(psc->on(trained(0))) == "merge 0, train 0, train 1");
  }
}

TEST_CASE("partial-sync: workers in step never have to catch up") {
  const auto psc = with_advance(2);
  psc->on(joined({0, 1}));
  for (int i = 0; i < 10; ++i) {
    CHECK(to_text(psc->on(trained(0))) == "merge 0, train 0");
    CHECK(to_text(psc->on(trained(1))) == "merge 1, train 1");
  }
}

TEST_CASE("partial-sync: a newcomer starts level with the fastest") {
  const auto psc = with_advance(2);
  psc->on(joined({0, 1}));
  psc->on(trained(0));
  CHECK(to_text(psc->on(joined({2}))) == "train 2");
  CHECK(to_text(psc->on(trained(1))) == "merge 1, train 1");
  CHECK(to_text(psc->on(trained(2))) == "merge 2, train 2");
  CHECK(to_text(psc->on(trained(2))) == "merge 2");
}

TEST_CASE("partial-sync: who joins during a catch-up waits for its end and is not awaited") {
  const auto psc = with_advance(1);
  psc->on(joined({0, 1, 2}));
  CHECK(to_text(psc->on(trained(1))) == "merge 1");
  CHECK(to_text(psc->on(joined({3, 4}))).empty());
  CHECK(to_text(psc->on(left(4))).empty());
  CHECK(to_text(psc->on(trained(0))) == "merge 0");
  CHECK(to_text(psc->on(trained(2))) == "merge 2, train 0, train 1, train 2, train 3");
}

TEST_CASE("partial-sync: deaths in a catch-up") {
  const auto psc = with_advance(1);
  psc->on(joined({0, 1, 2}));
  psc->on(trained(0));
  SECTION("of the last two awaited end it") {
    CHECK(to_text(psc->on(left(1))).empty());
    CHECK(to_text(psc->on(left(2))) == "train 0");
    CHECK(to_text(psc->on(trained(0))) == "merge 0, train 0");
  }
  SECTION("of the one that leads changes nothing") {
    CHECK(to_text(psc->on(left(0))).empty());
    CHECK(to_text(psc->on(trained(2))) == "merge 2");
    CHECK(to_text(psc->on(trained(1))) == "merge 1, train 1, train 2");
  }
  SECTION("of all; who joins then starts at once") {
    psc->on(left(0));
    psc->on(left(1));
    CHECK(to_text(psc->on(left(2))).empty());
    CHECK(to_text(psc->on(joined({3}))) == "train 3");
  }
}

TEST_CASE("partial-sync: a failed run counts, without a merge") {
  const auto psc = with_advance(2);
  psc->on(joined({0, 1}));
  CHECK(to_text(psc->on(failed(0))) == "train 0");
  CHECK(to_text(psc->on(failed(0))).empty());
  CHECK(to_text(psc->on(failed(1))) == "train 0, train 1");
}

TEST_CASE("partial-sync under random events does what its model says") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t random) {
    const std::uint64_t max_advance = 1 + random % 5;
    return compare(*with_advance(max_advance), partial_sync_model(max_advance), randoms);
  }));
}

TEST_CASE("partial-sync needs a lead of at least 1, and is found by its short name") {
  const auto made = make_strategy({.name = "psc"});
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::kUsage);
  CHECK(made.error().message.find("--max-advance") != std::string::npos);
  CHECK(make_strategy({.name = "psc", .max_advance = 1}));
}

}  // namespace speedo
