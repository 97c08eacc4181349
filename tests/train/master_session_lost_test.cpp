// Contributions that the store has lost: their data are trained all the same.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "train/master_session_driver.hpp"

namespace speedo {
namespace {

// Three workers in rounds; all of them have reported their first runs.
struct Round {
  explicit Round(const MasterConfig& config = config_for(3, 100), const std::string& name = "sync")
      : master(config, name) {
    for (std::uint64_t i = 0; i < 3; ++i) master.join(5 + i, i);
    for (std::uint64_t i = 0; i < 3; ++i) master.trained(5 + i, i, i);
  }
  std::vector<std::uint64_t> merged_runs() {
    std::vector<std::uint64_t> runs;
    for (const auto& each : master.last_merge.contributions) runs.push_back(each.run.value);
    return runs;
  }
  MasterDriver master;
};

using Numbers = std::vector<std::uint64_t>;

TEST_CASE("what the store has lost of a round is done again before the round is merged") {
  Round round;
  REQUIRE(round.master.last_merge.waits_for_lost);
  CHECK(round.master.merged(0, 0, {{1}}) == "train 6 run 3 it 0 v 0 data 1/4");
  CHECK(round.master.session.progress().iteration == 0);
  CHECK(round.master.session.progress().rejected == 1);
  CHECK(round.master.notes.back() ==
        "the contribution of worker 1 (run 1) is lost by the store, or damaged there; its run is "
        "done again");
  CHECK(round.master.trained(6, 1, 3) == "mean 1 it 0: 0.0 1.3 2.2");
  CHECK(round.merged_runs() == Numbers{0, 3, 2});  // in the order of the sum
  CHECK(round.master.merged(1, 1) ==
        "train 5 run 4 it 1 v 1 data 3/6; train 6 run 5 it 1 v 1 data 4/7; "
        "train 7 run 6 it 1 v 1 data 5/8");
  CHECK(round.master.session.progress().contributions == 3);
}

TEST_CASE("a round of which all is lost is done again as a whole") {
  Round round;
  CHECK(round.master.merged(0, 0, {{0}, {1}, {2}}) ==
        "train 5 run 3 it 0 v 0 data 0/3; train 6 run 4 it 0 v 0 data 1/4; "
        "train 7 run 5 it 0 v 0 data 2/5");
  CHECK(round.master.trained(7, 2, 5).empty());
  CHECK(round.master.trained(5, 0, 3).empty());
  CHECK(round.master.trained(6, 1, 4) == "mean 1 it 0: 0.3 1.4 2.5");
}

TEST_CASE("the data of a lost contribution whose worker has gone are given out again") {
  Round round;
  SECTION("before it was known") {
    round.master.lost(6);
    CHECK(round.master.merged(0, 0, {{1}}) == "mean 1 it 0: 0.0 2.2");
  }
  SECTION("while the run is done again") {
    round.master.merged(0, 0, {{1}});
    CHECK(round.master.lost(6) == "mean 1 it 0: 0.0 2.2");
  }
  round.master.merged(1, 1);
  // Shards 1 and 4 are reserved by those who begin next.
  CHECK(round.master.trains[5].shard == 3);
  CHECK(round.master.trains[5].next_shard == 1);
  CHECK(round.master.trains[7].next_shard == 4);
}

TEST_CASE("a run that is done again and is not finite is left out of its round") {
  Round round;
  round.master.merged(0, 0, {{1}});
  CHECK(round.master.trained(6, 1, 3, std::numeric_limits<float>::quiet_NaN()) ==
        "mean 1 it 0: 0.0 2.2");
  round.master.merged(1, 1);
  CHECK(round.master.trains[6].shard == 4);
  CHECK(round.master.trains[5].next_shard == 6);
}

TEST_CASE("below the fewest workers no run is done again until there are enough") {
  MasterConfig config = config_for(3, 100);
  config.workers_min = 3;
  Round round(config);
  round.master.lost(5);
  CHECK(round.master.merged(0, 0, {{1}}).empty());
  CHECK(round.master.join(8, 3) == "train 6 run 3 it 0 v 0 data 1/4");
}

TEST_CASE("a round of an exact number that has lost a run and its worker is merged, as is said") {
  MasterConfig config = config_for(3, 100);
  config.stages.front().strategy.exact_workers = 3;
  Round round(config);
  std::size_t lost = 1;
  SECTION("before it was known") {
    round.master.lost(6);
    round.master.merged(0, 0, {{1}});
  }
  SECTION("while the run is done again") {
    round.master.merged(0, 0, {{1}});
    CHECK_FALSE(round.master.noted("of its 3 runs"));
    round.master.lost(6);
  }
  SECTION("two of them") {
    lost = 2;
    round.master.lost(6);
    round.master.lost(7);
    round.master.merged(0, 0, {{1}, {2}});
  }
  const std::string said = fmt::format("merged with {} of its 3 runs", 3 - lost);
  CHECK(std::ranges::count_if(round.master.notes, [&](const std::string& each) {
          return each.find(said) != std::string::npos;
        }) == 1);
}

TEST_CASE("a round of which all is lost with its workers is not merged, and nothing is said") {
  MasterConfig config = config_for(1, 100);
  config.stages.front().strategy.exact_workers = 1;
  MasterDriver master(config, "sync");
  master.join(5, 0);
  master.trained(5, 0, 0);
  master.lost(5);
  master.merged(0, 0, {{0}});
  CHECK_FALSE(master.noted("of its 1 runs"));
}

TEST_CASE("what is lost of a round at the end stays to be given out by the next master") {
  Round round;
  round.master.merged(0, 0, {{1}});
  round.master.on(master_event::StopRequested{"SIGTERM"});
  CHECK(round.master.session.finished());
  MasterDriver next(config_for(3, 100), "sync");
  REQUIRE(next.session.restore(round.master.session.save()));
  for (std::uint64_t i = 3; i < 6; ++i) next.join(2 + i, i);
  CHECK(next.trains[5].shard == 0);
  CHECK(next.trains[6].shard == 1);
  CHECK(next.trains[7].shard == 2);
}

TEST_CASE("without rounds the data of a lost contribution are given out again later") {
  MasterDriver master(config_for(2, 100), "async");
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0);
  CHECK_FALSE(master.last_merge.waits_for_lost);
  CHECK(master.merged(0, 0, {{0}}) == "train 5 run 2 it 0 v 0 data 2/0");
  CHECK(master.notes.back().ends_with("; its data are given out again"));
}

TEST_CASE("the mean of a group is merged at once without what is lost, whose data stay open") {
  MasterConfig config = config_for(3, 100);
  config.stages.front().strategy.groups = {{"host5", "host6", "host7"}};
  Round round(config, "grouping");
  REQUIRE(round.master.last_merge.waits_for_lost);
  CHECK(round.master.merged(0, 0, {{1}}) == "mean 1 it 0: 0.0 2.2");
  // As its state says.
  MasterDriver next(config_for(1, 100));
  REQUIRE(next.session.restore(round.master.last_merge.state));
  next.join(5, 3);
  CHECK(next.trains[5].shard == 1);
}

TEST_CASE("an elastic worker keeps what it has trained when its step is lost") {
  MasterConfig config = config_for(3, 100);
  config.stages.front().update.kind = UpdateKind::kElastic;
  Round round(config, "sync-easgd");
  CHECK_FALSE(round.master.last_merge.waits_for_lost);
  round.master.merged(0, 1, {{1}});
  CHECK(round.master.session.progress().iteration == 1);
  CHECK(round.master.trains[6].shard == 4);
  CHECK(round.master.trains[6].next_shard == 7);
  CHECK(round.master.notes.back().ends_with("; left out; the worker keeps what it has trained"));
}

TEST_CASE("a store that loses a contribution to every round ends training, with the reason") {
  Round round;
  std::uint64_t merge = 0;
  while (!round.master.session.finished()) {
    REQUIRE(merge < kNonFiniteRunsMax);
    round.master.merged(merge++, 0, {{1}});
    if (round.master.session.finished()) break;
    round.master.trained(6, 1, round.master.trains.at(6).run);
  }
  CHECK(merge == kNonFiniteRunsMax);
  CHECK(round.master.error->code == ErrorCode::kUnavailable);
  CHECK(round.master.error->message.find("lost by the store") != std::string::npos);
  CHECK(round.master.error->message.find("base_lr") == std::string::npos);
}

}  // namespace
}  // namespace speedo
