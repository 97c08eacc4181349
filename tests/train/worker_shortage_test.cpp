#include "train/session/worker_shortage.hpp"

#include <chrono>

#include <speedo/base/limits.hpp>

#include "support/catch.hpp"
#include "train/session_parts.hpp"

namespace speedo {

namespace {

using Change = WorkerShortage::Change;

MasterConfig three_of_five() {
  MasterConfig config = config_for(5, 10);
  config.workers_min = 3;
  config.join_timeout = std::chrono::seconds(100);
  config.below_min_timeout = std::chrono::seconds(60);
  return config;
}

}  // namespace

TEST_CASE("training pauses below the minimum and goes on at it; gathering never pauses") {
  const MasterConfig config = three_of_five();
  WorkerShortage shortage(config);
  SessionCommands out;
  CHECK(shortage.wanted(false) == 5);
  CHECK(shortage.wanted(true) == 3);
  CHECK(shortage.update({false, 1, 0, {}}, {}, out) == Change::kNone);
  CHECK(shortage.update({true, 3, 7, {}}, {}, out) == Change::kNone);
  CHECK(take_notes(out).empty());
  CHECK(shortage.update({true, 2, 7, {}}, {}, out) == Change::kPauses);
  CHECK(shortage.paused());
  CHECK(take_notes(out) ==
        "training pauses at iteration 7: 2 of at least 3 workers alive; waiting for more\n");
  CHECK(shortage.update({true, 1, 7, {}}, {}, out) == Change::kNone);
  CHECK(shortage.update({true, 3, 8, {}}, {}, out) == Change::kGoesOn);
  CHECK(!shortage.paused());
  CHECK(take_notes(out) == "training goes on at iteration 8 with 3 workers\n");
}

TEST_CASE("workers that come and go at one iteration are said once in a while") {
  MasterConfig config = three_of_five();
  config.workers_min = 1;
  WorkerShortage shortage(config);
  SessionCommands out;
  const auto come_and_go = [&](std::uint64_t iteration, Instant now) {
    CHECK(shortage.update({true, 0, iteration, {}}, now, out) == Change::kPauses);
    CHECK(shortage.update({true, 1, iteration, {}}, now, out) == Change::kGoesOn);
    return take_notes(out);
  };
  const std::string both_at_7 =
      "no worker is left at iteration 7; waiting for new ones\n"
      "training goes on at iteration 7 with 1 worker\n";
  CHECK(come_and_go(7, std::chrono::seconds(1)) == both_at_7);
  CHECK(come_and_go(7, std::chrono::seconds(2)).empty());
  CHECK(come_and_go(7, kWaitingNoteInterval).empty());
  CHECK(come_and_go(7, std::chrono::seconds(1) + kWaitingNoteInterval) == both_at_7);
  CHECK(!come_and_go(8, std::chrono::seconds(2) + kWaitingNoteInterval).empty());

  // One that lasts is said once its time has come, and so is its end.
  const Instant later = std::chrono::seconds(3) + kWaitingNoteInterval;
  shortage.update({true, 0, 8, {}}, later, out);
  CHECK(take_notes(out).empty());
  CHECK(!shortage.watch({true, 0, 8, {}}, false, later + kWaitingNoteInterval, out));
  CHECK(take_notes(out) == "no worker is left at iteration 8; waiting for new ones\n");
  shortage.update({true, 1, 8, {}}, later + kWaitingNoteInterval, out);
  CHECK(take_notes(out) == "training goes on at iteration 8 with 1 worker\n");
}

TEST_CASE("gathering is given up after the join time-out, and says from time to time why") {
  const MasterConfig config = three_of_five();
  WorkerShortage shortage(config);
  SessionCommands out;
  const WorkerShortage::View view{false, 4, 0, "a could not work: full"};
  CHECK(!shortage.watch(view, false, std::chrono::seconds(5), out));
  CHECK(take_notes(out).empty());
  CHECK(!shortage.watch(view, false, std::chrono::seconds(5) + kWaitingNoteInterval, out));
  CHECK(take_notes(out) == "waiting for workers: 4 of 5 are ready; a could not work: full\n");
  CHECK(!shortage.watch(view, false, std::chrono::seconds(104), out));
  const auto reason = shortage.watch(view, false, std::chrono::seconds(105), out);
  REQUIRE(reason);
  CHECK(reason->find("--join-timeout") != std::string::npos);
}

TEST_CASE("a pause is given up after its own time-out, and sooner or later without any worker") {
  MasterConfig config = three_of_five();
  SessionCommands out;
  WorkerShortage few(config);
  few.update({true, 2, 0, {}}, std::chrono::seconds(10), out);
  CHECK(!few.watch({true, 2, 0, {}}, false, std::chrono::seconds(69), out));
  const auto reason = few.watch({true, 2, 0, {}}, false, std::chrono::seconds(70), out);
  REQUIRE(reason);
  CHECK(reason->find("--below-min-timeout") != std::string::npos);

  config.below_min_timeout = std::chrono::seconds(0);
  WorkerShortage none(config);
  none.update({true, 0, 0, {}}, std::chrono::seconds(10), out);
  CHECK(!none.watch({true, 0, 0, {}}, false, std::chrono::seconds(109), out));
  const auto alone = none.watch({true, 0, 0, {}}, false, std::chrono::seconds(110), out);
  REQUIRE(alone);
  CHECK(alone->find("--join-timeout") != std::string::npos);
}

TEST_CASE("the time while the store is away does not count as waiting for workers") {
  const MasterConfig config = three_of_five();
  WorkerShortage shortage(config);
  SessionCommands out;
  shortage.update({true, 0, 0, {}}, std::chrono::seconds(0), out);
  CHECK(!shortage.watch({true, 0, 0, {}}, true, std::chrono::seconds(500), out));
  CHECK(!shortage.watch({true, 0, 0, {}}, false, std::chrono::seconds(501), out));
  CHECK(!shortage.watch({true, 0, 0, {}}, false, std::chrono::seconds(560), out));
  CHECK(shortage.watch({true, 0, 0, {}}, false, std::chrono::seconds(561), out));
}

TEST_CASE("nothing pauses once training is over") {
  const MasterConfig config = three_of_five();
  WorkerShortage shortage(config);
  SessionCommands out;
  shortage.update({true, 1, 0, {}}, {}, out);
  CHECK(shortage.paused());
  shortage.end();
  CHECK(!shortage.paused());
}

}  // namespace speedo
