#include <algorithm>
#include <map>

#include "support/catch.hpp"

#include "models.hpp"
#include "trace.hpp"

namespace speedo {

namespace {

std::unique_ptr<Strategy> with_staleness(std::uint64_t staleness) {
  return strategy_of({.name = "ssp", .staleness = staleness});
}

}  // namespace

TEST_CASE("ssp: a worker waits when it is staleness + 1 runs ahead of the slowest") {
  const auto ssp = with_staleness(1);
  CHECK(to_text(ssp->on(joined({0, 1, 2}))) == "train 0, train 1, train 2");
  CHECK(to_text(ssp->on(trained(0))) == "merge 0, train 0");
  CHECK(to_text(ssp->on(trained(0))) == "merge 0");
  CHECK(to_text(ssp->on(trained(1))) == "merge 1, train 1");
  CHECK(to_text(ssp->on(trained(2))) == "merge 2, train 0, train 2");
}

TEST_CASE("ssp with staleness 0 works in rounds") {
  const auto ssp = with_staleness(0);
  ssp->on(joined({0, 1, 2}));
  for (int round = 0; round < 3; ++round) {
    CHECK(to_text(ssp->on(trained(1))) == "merge 1");
    CHECK(to_text(ssp->on(trained(0))) == "merge 0");
    CHECK(to_text(ssp->on(trained(2))) == "merge 2, train 0, train 1, train 2");
  }
}

TEST_CASE("ssp: the death of the slowest lets the others go on") {
  const auto ssp = with_staleness(0);
  ssp->on(joined({0, 1, 2}));
  ssp->on(trained(0));
  ssp->on(trained(2));
  CHECK(to_text(ssp->on(left(1))) == "train 0, train 2");
  ssp->on(trained(0));
  CHECK(to_text(ssp->on(left(0))).empty());
  CHECK(to_text(ssp->on(trained(2))) == "merge 2, train 2");
}

TEST_CASE("ssp: a newcomer starts at once, and nobody who waits has to wait for it") {
  const auto ssp = with_staleness(2);
  ssp->on(joined({0, 1}));
  ssp->on(trained(0));
  ssp->on(trained(0));
  CHECK(to_text(ssp->on(trained(0))) == "merge 0");
  CHECK(to_text(ssp->on(joined({2}))) == "train 2");
  CHECK(to_text(ssp->on(trained(1))) == "merge 1, train 0, train 1");
  CHECK(to_text(ssp->on(trained(2))) == "merge 2, train 2");
  CHECK(to_text(ssp->on(trained(2))) == "merge 2");
}

TEST_CASE("ssp: a failed run counts, without a merge") {
  const auto ssp = with_staleness(0);
  ssp->on(joined({0, 1}));
  CHECK(to_text(ssp->on(failed(0))).empty());
  CHECK(to_text(ssp->on(failed(1))) == "train 0, train 1");
}

TEST_CASE("ssp under random events does what its model says") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t random) {
    const std::uint64_t staleness = random % 5;
    return compare(*with_staleness(staleness), ssp_model(staleness), randoms);
  }));
}

// The bound from the outside: runs begun after a worker's first are counted, nothing else known.
TEST_CASE("ssp: among those who began together nobody finishes more than s + 1 runs ahead") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t random) -> std::string {
    const std::uint64_t staleness = random % 4;
    const auto ssp = with_staleness(staleness);
    World world;
    std::map<std::uint64_t, std::uint64_t> finished;
    for (const std::uint32_t each : randoms) {
      const Event event = next_event(world, each, false);
      if (world.next > 4 && finished.empty()) return {};
      if (const auto* e = std::get_if<Joined>(&event)) {
        finished.clear();
        for (const WorkerId worker : e->workers) finished[worker.value] = 0;
      }
      if (const auto* e = std::get_if<Left>(&event)) finished.erase(e->worker.value);
      if (const auto* e = std::get_if<Failed>(&event)) finished[e->worker.value] += 1;
      if (const auto* e = std::get_if<Trained>(&event)) finished[e->worker.value] += 1;
      if (const std::string wrong = world.apply(ssp->on(event)); !wrong.empty()) return wrong;
      for (const auto& [worker, runs] : finished) {
        for (const auto& [other, behind] : finished) {
          if (runs > behind + staleness + 1) return "too far ahead";
          if (world.running.contains(worker) && runs > behind + staleness) return "runs ahead";
        }
      }
    }
    return {};
  }));
}

}  // namespace speedo
