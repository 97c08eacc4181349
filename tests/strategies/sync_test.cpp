#include "support/catch.hpp"

#include "models.hpp"
#include "trace.hpp"

namespace speedo {

TEST_CASE("sync waits for all, merges the mean, starts all") {
  const auto sync = strategy_named("sync");
  CHECK(to_text(sync->on(joined({0, 1, 2}))) == "train 0, train 1, train 2");
  CHECK(to_text(sync->on(trained(2))).empty());
  CHECK(to_text(sync->on(trained(0))).empty());
  CHECK(to_text(sync->on(trained(1))) == "average 0 1 2, train 0, train 1, train 2");
  CHECK(to_text(sync->on(trained(0))).empty());
}

TEST_CASE("sync: the death of the last worker awaited ends the round") {
  const auto sync = strategy_named("sync");
  sync->on(joined({0, 1, 2}));
  sync->on(trained(0));
  CHECK(to_text(sync->on(left(1))).empty());
  CHECK(to_text(sync->on(left(2))) == "average 0, train 0");
}

TEST_CASE("sync: a contribution outlives its worker") {
  const auto sync = strategy_named("sync");
  sync->on(joined({0, 1}));
  sync->on(trained(0));
  CHECK(to_text(sync->on(left(0))).empty());
  CHECK(to_text(sync->on(trained(1))) == "average 0 1, train 1");
}

TEST_CASE("sync: who joins during a round starts with the next") {
  const auto sync = strategy_named("sync");
  sync->on(joined({0, 1}));
  CHECK(to_text(sync->on(joined({2}))).empty());
  sync->on(trained(1));
  CHECK(to_text(sync->on(joined({3}))).empty());
  CHECK(to_text(sync->on(left(3))).empty());
  CHECK(to_text(sync->on(trained(0))) == "average 0 1, train 0, train 1, train 2");
}

TEST_CASE("sync: when all die the round is empty, and the next who joins starts one") {
  const auto sync = strategy_named("sync");
  sync->on(joined({0, 1}));
  CHECK(to_text(sync->on(left(0))).empty());
  CHECK(to_text(sync->on(left(1))).empty());
  CHECK(to_text(sync->on(joined({2}))) == "train 2");
}

TEST_CASE("sync: all die after one has reported: its contribution is merged") {
  const auto sync = strategy_named("sync");
  sync->on(joined({0, 1}));
  sync->on(trained(0));
  sync->on(left(0));
  CHECK(to_text(sync->on(left(1))) == "average 0");
  CHECK(to_text(sync->on(joined({2}))) == "train 2");
}

TEST_CASE("sync: the worker that waits for the next round starts it when all others die") {
  const auto sync = strategy_named("sync");
  sync->on(joined({0}));
  sync->on(joined({1}));
  CHECK(to_text(sync->on(left(0))) == "train 1");
}

TEST_CASE("sync: a failed run counts as reported, without a contribution") {
  const auto sync = strategy_named("sync");
  sync->on(joined({0, 1}));
  sync->on(trained(1));
  CHECK(to_text(sync->on(failed(0))) == "average 1, train 0, train 1");
  sync->on(failed(1));
  CHECK(to_text(sync->on(failed(0))) == "train 0, train 1");
}

TEST_CASE("sync under random events does what its model says") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t) {
    return compare(*strategy_named("sync"), sync_model(), randoms);
  }));
}

}  // namespace speedo
