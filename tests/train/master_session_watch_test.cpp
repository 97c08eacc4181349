#include "support/catch.hpp"

#include <bit>

#include <speedo/base/limits.hpp>

#include "master_session_driver.hpp"

namespace speedo {

namespace {

std::string refused(std::uint64_t peer, ErrorCode code) {
  return fmt::format("refuse {} code {}", peer, static_cast<int>(code));
}

MasterConfig watching(std::uint64_t workers) {
  MasterConfig config = config_for(workers, 100);
  config.worker_timeout = std::chrono::seconds(10);
  config.stall_timeout = std::chrono::seconds(100);
  return config;
}

}  // namespace

TEST_CASE("a worker that is silent for worker_timeout is dead; what it sends later is ignored") {
  MasterDriver master(watching(2), "sync");
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  CHECK(master.tick(5).empty());
  CHECK(master.trained(5, 0, 0).empty());
  CHECK(master.tick(9).empty());
  CHECK(master.tick(10) == refused(6, ErrorCode::kTimeout) + "; mean 0 it 0: 0.0");
  CHECK(master.noted("worker host6/1/0 has not been heard of for 10 s (--worker-timeout)"));
  CHECK(master.trained(6, 1, 1).empty());
  CHECK(master.lost(6).empty());
  CHECK(master.merged(0, 1) == "train 5 run 2 it 1 v 1 data 2/1");
}

TEST_CASE("beats keep a worker alive, also while it prepares its net") {
  MasterDriver master(watching(2));
  master.tick(0);
  master.join(5, 0);
  master.hello(6);
  for (int at = 1; at <= 30; ++at) {
    CHECK(master.tick(at) == (at == 25 ? refused(6, ErrorCode::kTimeout) : ""));
    master.beat(5, 0, kNoRun, 0);
    if (at <= 15) master.beat(6, 1, kNoRun, 0);
  }
  CHECK(master.session.progress().workers_alive == 1);
  CHECK(master.ready(6, 1).empty());
  CHECK(master.session.progress().ignored == 1);
}

TEST_CASE("why a worker could not begin is said as long as others are waited for") {
  MasterDriver master(config_for(1, 100));
  master.tick(0);
  master.hello(5);
  const auto kData = static_cast<std::uint32_t>(ErrorCode::kData);
  CHECK(master.on(master_event::Leave{{5}, {0, kData, "'train_lmdb' does not exist"}}).empty());
  CHECK(master.noted("worker host5/1/0 left: 'train_lmdb' does not exist"));
  CHECK(master.noted("still waiting for workers: 0 of 1 are ready"));
  master.tick(60);
  CHECK(master.noted("waiting for workers: 0 of 1 are ready; host5/1/0 could not work: "
                     "'train_lmdb' does not exist"));
  master.notes.clear();
  master.join(6, 1);
  CHECK(master.noted("training starts at iteration 0 with 1 worker"));
  master.lost(6);
  master.tick(120);
  CHECK_FALSE(master.noted("could not work"));
}

TEST_CASE("time before the first tick is nobody's silence") {
  MasterDriver master(watching(1));
  master.join(5, 0);
  CHECK(master.one_tick(5000).empty());
  CHECK(master.tick(5009).empty());
  CHECK(master.tick(5010) == refused(5, ErrorCode::kTimeout));
}

TEST_CASE("a master that slept does not blame the others") {
  MasterConfig config = watching(2);
  config.below_min_timeout = std::chrono::seconds(30);
  config.workers_min = 2;
  MasterDriver master(config);
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  master.lost(6);                                   // training pauses
  CHECK(master.tick(9).empty());
  CHECK(master.one_tick(3609).empty());             // it slept for an hour
  CHECK(master.noted("slept for 3600 s"));
  CHECK(master.one_tick(3610) == refused(5, ErrorCode::kTimeout));
  CHECK(master.tick(3629).empty());
  CHECK(master.tick(3630) == fmt::format("finish code {}", static_cast<int>(ErrorCode::kTimeout)));
}

TEST_CASE("a run that makes no progress for stall_timeout makes its worker dead, beats or not") {
  MasterDriver master(watching(1));
  master.tick(0);
  master.join(5, 0);
  for (int at = 1; at <= 50; ++at) {
    CHECK(master.tick(at).empty());
    CHECK(master.beat(5, 0, 0, at).empty());        // it gets on
  }
  for (int at = 51; at < 150; ++at) {
    CHECK(master.tick(at).empty());
    CHECK(master.beat(5, 0, 0, 50).empty());        // it stands still
  }
  CHECK(master.tick(150) == refused(5, ErrorCode::kTimeout));
  CHECK(master.noted("its run 0 has made no progress for 100 s"));
}

TEST_CASE("a worker that beats for another run than the outstanding one has lost its order") {
  MasterDriver master(watching(1));
  master.tick(0);
  master.join(5, 0);
  for (int at = 1; at < 100; ++at) {
    CHECK(master.tick(at).empty());
    CHECK(master.beat(5, 0, kNoRun, at).empty());
  }
  CHECK(master.tick(100) == refused(5, ErrorCode::kTimeout));
}

TEST_CASE("a worker that waits for its order is not stalled") {
  MasterDriver master(watching(2), "sync");
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0);
  for (int at = 1; at <= 300; ++at) {
    CHECK(master.tick(at).empty());
    CHECK(master.beat(5, 0, kNoRun, 7).empty());
    CHECK(master.beat(6, 1, 1, at).empty());
  }
}

TEST_CASE("without time-outs silence means nothing") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  CHECK(master.tick(5000).empty());
}

TEST_CASE("the beat of one that is not admitted is answered: it shall join again") {
  MasterDriver master(watching(1));
  CHECK(master.beat(9, 3, kNoRun, 0) == refused(9, ErrorCode::kTimeout));
  CHECK(master.refusal.find("join again") != std::string::npos);
  master.join(5, 0);
  CHECK(master.beat(5, 77, kNoRun, 0).empty());     // an earlier incarnation of a connection in use
  CHECK(master.session.progress().ignored == 2);
  master.on(master_event::StopRequested{"x"});
  CHECK(master.beat(9, 3, kNoRun, 0).empty());
}

TEST_CASE("below MIN training pauses: runs end and are merged, none starts, and it is said") {
  MasterConfig config = config_for(2, 100);
  config.workers_min = 2;
  MasterDriver master(config);
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  master.trained(6, 1, 1);
  master.lost(6);
  CHECK(master.session.progress().paused);
  CHECK(master.noted("training pauses at iteration 0: 1 of at least 2 workers alive"));
  CHECK(master.merged(0, 1).empty());
  CHECK(master.trained(5, 0, 0) == "merge 1 it 1: 0.0");
  CHECK(master.merged(1, 2).empty());
  master.notes.clear();
  CHECK(master.tick(29).empty());
  CHECK(master.notes.empty());
  CHECK(master.tick(60).empty());
  CHECK(master.notes.size() == 2);
  CHECK(master.join(7, 2) == "train 5 run 2 it 2 v 2 data 2/4; train 7 run 3 it 2 v 2 data 3/5");
  CHECK(!master.session.progress().paused);
  CHECK(master.noted("training goes on at iteration 2 with 2 workers"));
}

TEST_CASE("a pause that lasts below_min_timeout ends training, with a snapshot") {
  MasterConfig config = config_for(2, 100);
  config.workers_min = 2;
  config.below_min_timeout = std::chrono::seconds(40);
  MasterDriver master(config);
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0);
  master.merged(0, 1);
  CHECK(master.tick(100).empty());
  master.lost(6);
  CHECK(master.tick(139).empty());
  CHECK(master.tick(140) == fmt::format("refuse 5 code {}; snapshot 1",
                                        static_cast<int>(ErrorCode::kUnavailable)));
  CHECK(!master.session.progress().paused);
  CHECK(master.snapshot_done(1) ==
        fmt::format("finish code {}", static_cast<int>(ErrorCode::kTimeout)));
  CHECK(master.error->message.find("--below-min-timeout") != std::string::npos);
}

TEST_CASE("a pause that ends in time starts the count anew") {
  MasterConfig config = config_for(2, 100);
  config.workers_min = 2;
  config.below_min_timeout = std::chrono::seconds(40);
  MasterDriver master(config);
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  master.lost(6);
  master.tick(39);
  master.join(7, 2);
  CHECK(master.tick(60).empty());
  master.lost(7);
  CHECK(master.tick(99).empty());
  CHECK(master.tick(100) ==
        fmt::format("refuse 5 code {}; finish code {}",
                    static_cast<int>(ErrorCode::kUnavailable),
                    static_cast<int>(ErrorCode::kTimeout)));
}

TEST_CASE("one that waits in a pause and dies is not started when it ends") {
  MasterConfig config = config_for(3, 100);
  config.workers_min = 3;
  MasterDriver master(config);
  master.join(5, 0);
  master.join(6, 1);
  master.join(7, 2);
  master.lost(7);
  master.trained(5, 0, 0);
  CHECK(master.merged(0, 1).empty());
  CHECK(master.lost(5).empty());
  CHECK(master.join(8, 3).empty());
  CHECK(master.join(9, 4) == "train 8 run 3 it 1 v 1 data 2/5; train 9 run 4 it 1 v 1 data 3/6");
}

TEST_CASE("a replica whose weights differ from the master's is sent away, to come back") {
  MasterDriver master(watching(2), "sync");
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0);
  CHECK(master.trained(6, 1, 1) == "mean 0 it 0: 0.0 1.1");
  const WeightsCheck check{{1}, 77};
  master.on(master_event::Merged{{0}, {1}, {}, check});
  // Of another version nothing is known.
  const auto report = [&](std::uint64_t peer, std::uint64_t run, const WeightsCheck& own) {
    return master.on(master_event::Trained{
        {peer}, {peer - 5, run, std::bit_cast<std::uint32_t>(1.0F), 1, 10, {}, {},
                 own.version.value, own.digest}});
  };
  CHECK(report(5, 2, {{0}, 3}).empty());
  CHECK(report(6, 3, {{1}, 78}) == refused(6, ErrorCode::kUnavailable) + "; mean 1 it 1: 0.2");
  CHECK(master.refusal.find("differ from the master's at version 1") != std::string::npos);
  CHECK(master.session.progress().workers_alive == 1);
  CHECK(master.last_merge.contributions.size() == 1);
}

TEST_CASE("a merge says whether somebody waits who was not in it") {
  MasterDriver master(watching(2), "sync");
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  master.join(7, 2);
  master.trained(5, 0, 0);
  master.trained(6, 1, 1);
  CHECK(master.last_merge.has_newcomers);
  master.merged(0, 1);
  for (std::uint64_t peer = 5; peer < 8; ++peer) master.trained(peer, peer - 5, peer - 3);
  CHECK_FALSE(master.last_merge.has_newcomers);
}

}  // namespace speedo
