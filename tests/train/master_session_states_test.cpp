// What workers have alone, on its way into snapshots and out of them.

#include "support/catch.hpp"

#include "master_session_driver.hpp"
#include "train/session/state_gathering.hpp"

namespace speedo {
namespace {

MasterConfig gathering_config(std::uint64_t max_iteration) {
  MasterConfig config = config_for(2, max_iteration);
  config.snapshot_interval = 1;
  config.snapshot_workers = true;
  return config;
}

// Both train, and what they have made is merged.
std::string gathered_round(MasterDriver& master, std::uint64_t number) {
  CHECK(master.trained(5, 0, 2 * number).empty());
  master.trained(6, 1, 2 * number + 1);
  return master.merged(number, number + 1);
}

MasterConfig gathering_config_without_interval() {
  MasterConfig config = gathering_config(9);
  config.snapshot_interval = 0;
  return config;
}

// Two workers, which are in their second round then.
void join_for_a_round(MasterDriver& master) {
  master.join(5, 0);
  master.join(6, 1);
  gathered_round(master, 0);
}

}  // namespace

TEST_CASE("states are asked for before anybody is sent on, and the snapshot waits for them") {
  MasterDriver master(gathering_config(9), "sync");
  master.join(5, 0);
  master.join(6, 1);
  CHECK(gathered_round(master, 0) ==
        "snapshot 1; save 5 it 1 merged 0; save 6 it 1 merged 1; train 5 run 2 it 1 v 1 data 2/4; "
        "train 6 run 3 it 1 v 1 data 3/5");
  CHECK(master.saved(6, 1, 1).empty());
  CHECK(master.saved(6, 1, 1).empty());
  CHECK(master.saved(5, 0, 7).empty());  // of another snapshot
  CHECK(master.saved(6, 0, 1).empty());  // in another's name
  CHECK(master.saved(5, 0, 1) == "states 1: 0 1");
  // The next snapshot is due while this one is being written: nobody is sent on before it can be
  // asked.
  CHECK(gathered_round(master, 1).empty());
  CHECK(master.snapshot_done(1) ==
        "snapshot 2; save 5 it 2 merged 2; save 6 it 2 merged 3; train 5 run 4 it 2 v 2 data 4/6; "
        "train 6 run 5 it 2 v 2 data 5/7");
}

TEST_CASE("who fails, goes or does not answer is left out, and named") {
  MasterDriver master(gathering_config(9), "sync");
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  gathered_round(master, 0);
  SECTION("it fails") {
    master.saved(5, 0, 1, static_cast<std::uint32_t>(ErrorCode::kNotFinite));
    CHECK(master.noted("without the state of worker host5/1/0: why"));
    CHECK(master.saved(6, 1, 1) == "states 1: 1");
  }
  SECTION("it goes") {
    master.saved(6, 1, 1);
    CHECK(master.lost(5).find("states 1: 1") != std::string::npos);
    CHECK(master.noted("without the state of worker host5/1/0: it is gone"));
  }
  SECTION("it does not answer") {
    const int patience = static_cast<int>(StateGathering::kPatience.count());
    master.saved(5, 0, 1);
    CHECK(master.tick(patience - 1).empty());
    CHECK(master.tick(patience) == "states 1: 0");
    CHECK(master.noted("without the state of worker host6/1/0: it has not answered within 60 s"));
    CHECK(master.saved(6, 1, 1).empty());
  }
}

TEST_CASE("at the end workers are sent away once their states are there") {
  MasterConfig config = gathering_config(1);
  config.test_interval = 1;
  MasterDriver master(config, "sync");
  master.join(5, 0);
  master.join(6, 1);
  CHECK(gathered_round(master, 0) == "test 1; save 5 it 1 merged 0; save 6 it 1 merged 1");
  CHECK(master.saved(5, 0, 1).empty());
  CHECK(master.lost(6) == "stop 5; stop 6");
  CHECK(master.tested(1) == "snapshot 1; states 1: 0");
  CHECK(master.snapshot_done(1) == "finish");
}

TEST_CASE("at the end states are asked for once those of an earlier snapshot are in files") {
  MasterDriver master(gathering_config(2), "sync");
  master.join(5, 0);
  master.join(6, 1);
  gathered_round(master, 0);
  master.saved(5, 0, 1);
  CHECK(gathered_round(master, 1).empty());
  SECTION("the states are there, and not the files") {
    CHECK(master.saved(6, 1, 1) == "states 1: 0 1");
    CHECK(master.snapshot_done(1) == "snapshot 2; save 5 it 2 merged 2; save 6 it 2 merged 3");
    master.saved(5, 0, 2);
    CHECK(master.saved(6, 1, 2) == "stop 5; stop 6; states 2: 0 1");
    CHECK(master.snapshot_done(2) == "finish");
  }
  SECTION("a worker goes before it can be asked") {
    master.saved(6, 1, 1);
    const bool says_so = GENERATE(true, false);
    CHECK((says_so ? master.leave(6, 1) : master.lost(6)).empty());
    CHECK(master.snapshot_done(1) == "snapshot 2; save 5 it 2 merged 2");
    CHECK(master.saved(5, 0, 2) == "stop 5; stop 6; states 2: 0");
    CHECK(master.snapshot_done(2) == "finish");
  }
  SECTION("a signal comes, and nobody is waited for") {
    CHECK(master.on(master_event::StopRequested{"SIGTERM"}) == "stop 5; stop 6; states 1: 0");
    CHECK(master.snapshot_done(1) == "snapshot 2; states 2:");
    CHECK(master.snapshot_done(2) == "finish");
  }
}

TEST_CASE("a second signal waits for no states; a stop without a snapshot asks for none") {
  const MasterConfig config = gathering_config_without_interval();
  MasterDriver master(config, "sync");
  join_for_a_round(master);
  SECTION("with") {
    // Their runs under way have told them what was merged.
    CHECK(master.on(master_event::StopRequested{"SIGTERM"}) ==
          "save 5 it 1 before 2; save 6 it 1 before 3; snapshot 1");
    CHECK(master.on(master_event::StopRequested{"SIGTERM"}) == "stop 5; stop 6; states 1:");
    CHECK(master.snapshot_done(1) == "finish");
  }
  SECTION("with, and one that does not answer") {
    master.tick(0);
    master.on(master_event::StopRequested{"SIGTERM"});
    master.saved(5, 0, 1);
    CHECK(master.tick(11).empty());
    CHECK(master.tick(12) == "stop 5; stop 6; states 1: 0");
    CHECK(master.noted("without the state of worker host6/1/0: it has not answered within 12 s"));
  }
  SECTION("without") {
    MasterConfig none = config;
    none.snapshot_at_end = false;
    MasterDriver other(none, "sync");
    join_for_a_round(other);
    CHECK(other.on(master_event::StopRequested{"SIGTERM", false}) == "stop 5; stop 6; finish");
  }
}

TEST_CASE("states of a wished snapshot, or one at a stop, are without runs that it is without") {
  const MasterConfig config = gathering_config_without_interval();
  MasterDriver master(config, "sync");
  join_for_a_round(master);
  master.trained(5, 0, 2);  // It waits for the other one's.
  SECTION("wished") {
    CHECK(master.on(master_event::SnapshotRequested{}) ==
          "snapshot 1; save 5 it 1 before 2; save 6 it 1 before 3");
  }
  SECTION("at a stop") {
    CHECK(master.on(master_event::StopRequested{"SIGTERM"}) ==
          "save 5 it 1 before 2; save 6 it 1 before 3; snapshot 1");
  }
  SECTION("what came to nothing for good is no such run") {
    CHECK(master.trained(6, 1, 3, std::numeric_limits<float>::quiet_NaN()).find("mean 1") !=
          std::string::npos);
    CHECK(master.on(master_event::StopRequested{"SIGTERM"}).empty());
    CHECK(master.merged(1, 2).find("save 5 it 2 merged 2; save 6 it 2;") != std::string::npos);
  }
}

TEST_CASE("a master that begins at the end leaves the states that its checkpoint has alone") {
  for (const std::uint64_t seats : {0, 2}) {
    MasterConfig config = gathering_config(40);
    config.start_iteration = 40;
    config.seats = seats;
    MasterDriver master(config);
    CHECK(master.tick(0) == (seats == 0 ? "snapshot 40; states 40:" : "finish"));
  }
}

TEST_CASE("the k-th worker takes state k with its first order; one that dies leaves it to others") {
  MasterConfig config = config_for(2, 9);
  config.seats = 2;
  MasterDriver master(config, "sync");
  master.join(5, 0);
  master.join(6, 1);
  CHECK(master.trains.at(5).seat == 0);
  CHECK(master.trains.at(6).seat == 1);
  CHECK(master.trained(5, 0, 0) == "erase seat 0");
  master.lost(6);
  master.merged(0, 1);
  CHECK(master.trains.at(5).seat == kNoSeat);
  master.join(7, 2);
  master.trained(5, 0, 2);
  master.merged(1, 2);
  CHECK(master.trains.at(7).seat == 1);
  CHECK(master.trains.at(5).seat == kNoSeat);
  CHECK(master.trained(7, 2, master.trains.at(7).run) == "erase seat 1");
}

}  // namespace speedo
