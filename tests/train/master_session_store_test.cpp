// A store that is away is waited for; what workers that are gone left in it is erased.

#include "support/catch.hpp"

#include <speedo/base/limits.hpp>

#include "master_session_driver.hpp"

namespace speedo {

namespace {

const Error kAway{ErrorCode::kTimeout, "Redis at h:1: no answer"};

MasterConfig patient(std::uint64_t workers, int seconds) {
  MasterConfig config = config_for(workers, 100);
  config.store_timeout = std::chrono::seconds(seconds);
  return config;
}

std::size_t count_notes(const MasterDriver& master, const std::string& part) {
  std::size_t count = 0;
  for (const std::string& note : master.notes) count += note.find(part) != std::string::npos;
  return count;
}

std::vector<std::uint64_t> workers(std::initializer_list<std::uint64_t> ids) { return ids; }

}  // namespace

TEST_CASE("a store that is away is waited for, with a line every 30 s, and training goes on") {
  MasterDriver master(patient(1, 600));
  master.tick(0);
  master.join(5, 0);
  CHECK(master.on(master_event::StoreLost{kAway}).empty());
  CHECK(master.on(master_event::StoreLost{kAway}).empty());
  CHECK(count_notes(master, "the store is out of reach at iteration 0: Redis at h:1") == 1);
  CHECK(master.tick(180).empty());
  CHECK(count_notes(master, "the store has been out of reach for") == 6);
  CHECK(master.noted("out of reach for 90 s; training ends after 600 s (--store-timeout)"));
  CHECK(master.on(master_event::StoreBack{}).empty());
  CHECK(master.noted("the store is back after 180 s; training goes on at iteration 0"));
  CHECK(master.trained(5, 0, 0) == "merge 0 it 0: 0.0");
  CHECK(master.merged(0, 1) == "train 5 run 1 it 1 v 1 data 1/2");
  CHECK(master.tick(2000).empty());
  CHECK(count_notes(master, "out of reach for") == 6);
}

// One worker's first run is merged, and then the store is lost.
void lose_after_merge(MasterDriver& master) {
  master.tick(0);
  master.join(5, 0);
  master.trained(5, 0, 0);
  master.merged(0, 1);
  master.on(master_event::StoreLost{kAway});
}

TEST_CASE("a store that stays away ends training as unavailable, with a snapshot") {
  MasterDriver master(patient(1, 60));
  lose_after_merge(master);
  CHECK(master.tick(59).empty());
  CHECK(master.stopped_waiting == 0);
  CHECK(master.tick(60) ==
        fmt::format("refuse 5 code {}; snapshot 1", static_cast<int>(ErrorCode::kUnavailable)));
  CHECK(master.stopped_waiting == 1);
  CHECK(master.snapshot_done(1) ==
        fmt::format("finish code {}", static_cast<int>(ErrorCode::kUnavailable)));
  CHECK(master.error->message ==
        "Redis at h:1: no answer; out of reach for 60 s (--store-timeout)");
}

TEST_CASE("a store that is back once training has ended is said to be back, and no more") {
  MasterDriver master(patient(1, 60));
  lose_after_merge(master);
  master.tick(60);
  CHECK(!master.session.finished());  // the last snapshot is being written
  master.on(master_event::StoreBack{});
  CHECK(count_notes(master, "the store is back after 60 s") == 1);
  CHECK(count_notes(master, "goes on") == 0);
}

TEST_CASE("a merge under way when the store is given up is waited for: it has been told to end") {
  MasterDriver master(patient(1, 60));
  master.tick(0);
  master.join(5, 0);
  master.trained(5, 0, 0);
  master.merged(0, 1);
  master.trained(5, 0, 1);
  master.on(master_event::StoreLost{kAway});
  CHECK(master.tick(60) ==
        fmt::format("refuse 5 code {}", static_cast<int>(ErrorCode::kUnavailable)));
  CHECK(master.stopped_waiting == 1);
  CHECK(master.on(master_event::MergeFailed{{1}, kAway}) == "snapshot 1");
}

TEST_CASE("the store's absence does not count as a want of workers") {
  MasterConfig config = patient(2, 600);
  config.workers_min = 2;
  config.below_min_timeout = std::chrono::seconds(20);
  config.join_timeout = std::chrono::seconds(20);
  MasterDriver master(config);
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  master.on(master_event::StoreLost{kAway});
  master.lost(5);
  master.lost(6);
  CHECK(master.tick(300).empty());
  master.on(master_event::StoreBack{});
  CHECK(master.tick(319).empty());
  CHECK(!master.tick(322).empty());
  CHECK(master.error->code == ErrorCode::kTimeout);
}

TEST_CASE("that workers leave since the store fails them is said now and then, with their number") {
  MasterDriver master(patient(1, 600));
  master.tick(0);
  master.join(5, 0);
  const auto leave_and_join = [&](std::uint64_t worker) {
    master.on(master_event::Leave{
        {5}, {worker, static_cast<std::uint32_t>(ErrorCode::kUnavailable), "OOM"}});
    master.join(5, worker + 1);
  };
  for (std::uint64_t worker = 0; worker < 5; ++worker) leave_and_join(worker);
  CHECK(count_notes(master, "left: OOM") == 1);
  master.tick(30);
  leave_and_join(5);
  CHECK(count_notes(master, "left: OOM (workers left 4 times more") == 1);
}

TEST_CASE("without a time-out a store that is away ends training at once") {
  MasterDriver master(patient(1, 0));
  master.join(5, 0);
  CHECK(!master.on(master_event::StoreLost{kAway}).empty());
  CHECK(master.error->code == ErrorCode::kTimeout);
}

TEST_CASE("what a worker that is gone has in the store is erased, once nobody needs it") {
  MasterDriver master(patient(2, 60), "sync");
  master.join(5, 0);
  master.join(6, 1);
  SECTION("at once, if it had reported nothing") {
    master.lost(5);
    CHECK(master.erased == workers({0}));
    master.lost(6);
    CHECK(master.erased == workers({0, 1}));
  }
  SECTION("after the merge that its report takes part in") {
    master.trained(5, 0, 0);
    master.lost(5);
    CHECK(master.erased.empty());
    CHECK(master.trained(6, 1, 1) == "mean 0 it 0: 0.0 1.1");
    CHECK(master.erased.empty());
    master.merged(0, 1);
    CHECK(master.erased == workers({0}));
  }
  SECTION("at the end, if it was still to be merged") {
    master.trained(5, 0, 0);
    master.lost(5);
    master.on(master_event::StopRequested{"SIGTERM"});
    CHECK(master.erased == workers({0}));
    CHECK(master.stopped_waiting == 1);
  }
  SECTION("not of one that was never given a run") {
    master.hello(7);
    master.lost(7);
    CHECK(master.erased.empty());
  }
}

}  // namespace speedo
