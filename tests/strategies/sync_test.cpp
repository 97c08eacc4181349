#include "support/catch.hpp"

#include "models.hpp"
#include "trace.hpp"

namespace speedo {
namespace {

std::unique_ptr<Strategy> exact_sync(std::uint64_t workers) {
  return make_strategy({.name = "sync", .exact_workers = workers}).value();
}

}  // namespace

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

TEST_CASE("sync, an exact number: who joins does what one that died owes the round") {
  const auto sync = exact_sync(3);
  CHECK(to_text(sync->on(joined({0, 1}))).empty());
  CHECK(to_text(sync->on(joined({2}))) == "train 0, train 1, train 2");
  sync->on(trained(0));
  CHECK(to_text(sync->on(left(1))).empty());
  CHECK(to_text(sync->on(trained(2))).empty());
  CHECK(to_text(sync->on(joined({3}))) == "train 3");
  CHECK(to_text(sync->on(trained(3))) == "average 0 2 3, train 0, train 2, train 3");
}

TEST_CASE("sync, an exact number: one that reported and died is replaced in the next round") {
  const auto sync = exact_sync(2);
  sync->on(joined({0, 1}));
  sync->on(trained(0));
  CHECK(to_text(sync->on(left(0))).empty());
  CHECK(to_text(sync->on(trained(1))) == "average 0 1");
  CHECK(to_text(sync->on(joined({2}))) == "train 1, train 2");
  // One that is not in the round may be there before it is wanted.
  sync->on(trained(1));
  CHECK(to_text(sync->on(left(1))).empty());
  CHECK(to_text(sync->on(joined({3}))).empty());
  CHECK(to_text(sync->on(left(2))) == "train 3");
  CHECK(to_text(sync->on(trained(3))) == "average 1 3");
}

TEST_CASE("sync, an exact number: a failed run is none that is missing") {
  const auto sync = exact_sync(2);
  sync->on(joined({0, 1}));
  sync->on(failed(0));
  CHECK(to_text(sync->on(trained(1))) == "average 1, train 0, train 1");
}

TEST_CASE("sync of an exact number under random events does what its model says") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t random) {
    const std::uint64_t exact = 1 + random % 5;
    return compare(*exact_sync(exact), exact_sync_model(exact), randoms, false, exact);
  }));
}

TEST_CASE("sync under random events does what its model says") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t) {
    return compare(*strategy_named("sync"), sync_model(), randoms);
  }));
}

}  // namespace speedo
