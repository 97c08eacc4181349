#include <limits>

#include "support/catch.hpp"

#include "master_session_driver.hpp"

namespace speedo {

namespace {

const Error kDiskGone{ErrorCode::kCannotWrite, "cannot write /snap: no room"};

std::string finish_code(ErrorCode error) {
  return "finish code " + std::to_string(static_cast<int>(error));
}

// Told to look for the next master.
std::string refused(std::uint64_t peer) {
  return fmt::format("refuse {} code {}", peer, static_cast<int>(ErrorCode::kUnavailable));
}

// A report of the one worker and its merge; `step` counts from 0.
std::string step(MasterDriver& master, std::uint64_t step) {
  master.trained(5, 0, step);
  return master.merged(step, step + 1);
}

}  // namespace

TEST_CASE("at the last iteration workers stop, then the last test and snapshot, then the end") {
  MasterConfig config = config_for(2, 2);
  config.test_interval = 100;
  MasterDriver master(config);
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0);
  master.trained(6, 1, 1);
  CHECK(master.merged(0, 1) == "train 5 run 2 it 1 v 1 data 2/4; merge 1 it 1: 1.1");
  CHECK(master.merged(1, 2) == "stop 5; stop 6; test 2");
  CHECK(master.trained(5, 0, 2).empty());
  CHECK(master.session.progress().ignored == 0);
  CHECK(master.hello(9) == "stop 9");
  CHECK(master.tested(2) == "snapshot 2");
  CHECK(master.snapshot_done(2) == "finish");
  CHECK(!master.error);
  CHECK(master.session.progress().accuracy == 0.5F);
  CHECK(master.session.progress().test_loss == 1.5F);
  CHECK(master.session.progress().iteration == 2);
}

TEST_CASE("test interval 0 never tests, no snapshot at the end if not wanted") {
  MasterConfig config = config_for(1, 1);
  config.snapshot_at_end = false;
  config.test_at_start = true;
  MasterDriver master(config);
  CHECK(master.join(5, 0) == "train 5 run 0 it 0 v 0 data 0/1");
  CHECK(step(master, 0) == "stop 5; finish");
}

TEST_CASE("tests and snapshots fall due at multiples of their intervals while training goes on") {
  MasterConfig config = config_for(1, 4);
  config.test_interval = 2;
  config.snapshot_interval = 3;
  config.test_at_start = true;
  MasterDriver master(config);
  CHECK(master.join(5, 0) == "test 0; train 5 run 0 it 0 v 0 data 0/1");
  CHECK(step(master, 0) == "train 5 run 1 it 1 v 1 data 1/2");
  master.tested(0);
  CHECK(step(master, 1) == "train 5 run 2 it 2 v 2 data 2/3; test 2");
  CHECK(step(master, 2) == "train 5 run 3 it 3 v 3 data 3/4; snapshot 3");
  master.snapshot_done(3);
  CHECK(step(master, 3) == "stop 5");  // test 2 is still under way
  CHECK(master.tested(2) == "test 4");
  CHECK(master.tested(4) == "snapshot 4");
  CHECK(master.snapshot_done(4) == "finish");
}

TEST_CASE("one that falls due while another is under way waits, and the next merge with it") {
  MasterConfig config = config_for(1, 100);
  config.test_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  CHECK(step(master, 0) == "train 5 run 1 it 1 v 1 data 1/2; test 1");
  CHECK(step(master, 1) == "train 5 run 2 it 2 v 2 data 2/3");
  CHECK(master.trained(5, 0, 2).empty());
  CHECK(master.tested(1) == "test 2; merge 2 it 2: 0.2");
  CHECK(master.merged(2, 3) == "train 5 run 3 it 3 v 3 data 3/4");
  CHECK(master.on(master_event::TestFailed{{ErrorCode::kData, "gone"}}) == "test 3");
  CHECK(master.noted("the test at iteration 2 failed: gone"));
}

TEST_CASE("the end does not repeat what its iteration already had") {
  MasterConfig config = config_for(1, 2);
  config.test_interval = 2;
  config.snapshot_interval = 2;
  MasterDriver master(config);
  master.join(5, 0);
  step(master, 0);
  CHECK(step(master, 1) == "stop 5; test 2");
  CHECK(master.tested(2) == "snapshot 2");
  CHECK(master.snapshot_done(2) == "finish");
}

TEST_CASE("nothing to train: only the last test and snapshot") {
  MasterConfig config = config_for(3, 40);
  config.start_iteration = 40;
  config.test_interval = 10;
  MasterDriver master(config);
  CHECK(master.tick(0) == "test 40");
  CHECK(master.tested(40) == "snapshot 40");
  CHECK(master.snapshot_done(40) == "finish");
}

TEST_CASE("stop: no new work, the merge under way is waited for, a snapshot, success") {
  MasterDriver master(config_for(2, 100));
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0);
  master.trained(6, 1, 1);
  CHECK(master.on(master_event::StopRequested{"SIGTERM"}) == "stop 5; stop 6");
  CHECK(master.noted("stopped: SIGTERM"));
  CHECK(master.merged(0, 1) == "snapshot 1");
  CHECK(master.snapshot_done(1) == "finish");
  CHECK(!master.error);
  CHECK(master.session.progress().merges == 1);
}

TEST_CASE("a stop without a snapshot has the job's last one, if it has any") {
  for (const bool at_end : {false, true}) {
    MasterConfig config = config_for(1, 100);
    config.snapshot_at_end = at_end;
    MasterDriver master(config);
    master.join(5, 0);
    step(master, 0);
    CHECK(master.on(master_event::StopRequested{"SIGINT", false}) ==
          (at_end ? "stop 5; snapshot 1" : "stop 5; finish"));
  }
}

TEST_CASE("stop does not wait for a test") {
  MasterConfig config = config_for(1, 100);
  config.test_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  step(master, 0);
  CHECK(master.on(master_event::StopRequested{"SIGINT"}) == "stop 5; snapshot 1");
  CHECK(master.snapshot_done(1) == "finish");
  CHECK(master.tested(1).empty());
}

TEST_CASE("stop during the last test leaves it") {
  MasterConfig config = config_for(1, 1);
  config.test_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  CHECK(step(master, 0) == "stop 5; test 1");
  CHECK(master.on(master_event::StopRequested{"SIGINT"}) == "snapshot 1");
  CHECK(master.snapshot_done(1) == "finish");
}

TEST_CASE("stop before anything was merged has nothing to save") {
  MasterConfig config = config_for(1, 100);
  config.start_iteration = 7;
  MasterDriver master(config);
  master.join(5, 0);
  CHECK(master.on(master_event::StopRequested{"SIGINT"}) == "stop 5; finish");
}

TEST_CASE("stop before training begins has nothing to save") {
  MasterDriver master(config_for(2, 100));
  master.join(5, 0);
  CHECK(master.on(master_event::StopRequested{"SIGINT"}) == "stop 5; finish");
}

TEST_CASE("stop where a snapshot was just taken does not take it again") {
  MasterConfig config = config_for(1, 100);
  config.snapshot_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  CHECK(step(master, 0) == "train 5 run 1 it 1 v 1 data 1/2; snapshot 1");
  CHECK(master.on(master_event::StopRequested{"x"}) == "stop 5");
  CHECK(master.snapshot_done(1) == "finish");
}

TEST_CASE("a snapshot that is asked for is of an iteration, not of a merge under way") {
  MasterDriver master(config_for(1, 100));
  CHECK(master.on(master_event::SnapshotRequested{}).empty());
  CHECK(master.noted("nothing was trained yet"));
  master.join(5, 0);
  step(master, 0);
  CHECK(master.on(master_event::SnapshotRequested{}) == "snapshot 1");
  master.snapshot_done(1);
  master.trained(5, 0, 1);
  CHECK(master.on(master_event::SnapshotRequested{}).empty());
  CHECK(master.merged(1, 2) == "train 5 run 2 it 2 v 2 data 2/3; snapshot 2");
  CHECK(master.snapshot_done(2).empty());
  CHECK(master.on(master_event::StopRequested{"SIGTERM"}) == "stop 5; finish");
}

TEST_CASE("a snapshot that fails on the way is a warning; the last one is tried again until stop") {
  MasterConfig config = config_for(1, 2);
  config.snapshot_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  step(master, 0);
  CHECK(master.on(master_event::SnapshotFailed{kDiskGone}).empty());
  CHECK(master.noted("the snapshot at iteration 1 failed: " + kDiskGone.message));
  CHECK(step(master, 1) == "stop 5; snapshot 2");
  master.one_tick(0);
  CHECK(master.on(master_event::SnapshotFailed{kDiskGone}).empty());
  CHECK(master.noted("cannot be written: " + kDiskGone.message + "; trying again in 30 s"));
  CHECK(master.tick(29).empty());
  CHECK(master.tick(30) == "snapshot 2");
  CHECK(master.on(master_event::SnapshotFailed{kDiskGone}).empty());
  CHECK(master.on(master_event::StopRequested{"SIGTERM"}) == "snapshot 2");
  CHECK(master.on(master_event::SnapshotFailed{kDiskGone}) == finish_code(ErrorCode::kCannotWrite));
}

TEST_CASE("a last snapshot that finds room in the end is a success") {
  MasterDriver master(config_for(1, 1));
  master.join(5, 0);
  master.one_tick(0);
  CHECK(step(master, 0) == "stop 5; snapshot 1");
  CHECK(master.on(master_event::SnapshotFailed{kDiskGone}).empty());
  CHECK(master.hello(9) == "stop 9");
  CHECK(master.tick(30) == "snapshot 1");
  CHECK(master.snapshot_done(1) == "finish");
}

TEST_CASE("a master that was told to stop does not wait for room") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  step(master, 0);
  CHECK(master.on(master_event::StopRequested{"SIGTERM"}) == "stop 5; snapshot 1");
  CHECK(master.on(master_event::SnapshotFailed{kDiskGone}) == finish_code(ErrorCode::kCannotWrite));
}

TEST_CASE("a master that was told to stop and cannot get its weights for a snapshot says so") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  step(master, 0);
  CHECK(master.on(master_event::StopRequested{"SIGTERM"}) == "stop 5; snapshot 1");
  CHECK(master.on(master_event::SnapshotFailed{{ErrorCode::kUnavailable, "Redis: no answer"}}) ==
        finish_code(ErrorCode::kUnavailable));
  REQUIRE(master.error);
  CHECK(master.error->message ==
        "the snapshot of iteration 1 is not written: Redis: no answer");
}

TEST_CASE("a last snapshot that fails for another reason than the disk is an error at once") {
  MasterDriver master(config_for(1, 1));
  master.join(5, 0);
  step(master, 0);
  CHECK(master.on(master_event::SnapshotFailed{{ErrorCode::kCorrupt, "read back"}}) ==
        finish_code(ErrorCode::kCorrupt));
}

TEST_CASE("a last test whose loss is not finite is the end of a training that diverged") {
  MasterConfig config = config_for(1, 2);
  config.test_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  CHECK(step(master, 0).find("test 1") != std::string::npos);
  CHECK(master.on(master_event::Tested{1, 0.0F, 0.0F, true}).empty());
  CHECK(master.noted("training has diverged: the test loss of iteration 1"));
  CHECK(step(master, 1) == "stop 5; test 2");
  CHECK(master.on(master_event::Tested{2, 0.0F, 0.0F, true}) == finish_code(ErrorCode::kNotFinite));
  CHECK(master.error->message.find("iteration 2") != std::string::npos);
}

TEST_CASE("what the last test says keeps a snapshot from being written that is due anyway") {
  MasterConfig config = config_for(1, 2);
  config.test_interval = config.snapshot_interval = 2;
  MasterDriver master(config);
  master.join(5, 0);
  step(master, 0);
  CHECK(step(master, 1) == "stop 5; test 2");
  CHECK(master.on(master_event::Tested{2, 0.0F, 0.0F, true}) == finish_code(ErrorCode::kNotFinite));
  CHECK(master.noted("no snapshot of iteration 2 is written: its test loss is not finite"));
}

TEST_CASE("weights whose test found them diverged get no snapshot by a signal") {
  MasterConfig config = config_for(1, 100);
  config.test_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  step(master, 0);
  master.on(master_event::Tested{1, 0.0F, 0.0F, true});
  CHECK(master.on(master_event::SnapshotRequested{}).empty());
  CHECK(master.noted("no snapshot of iteration 1 is written"));
  CHECK(master.on(master_event::StopRequested{"SIGTERM"}) ==
        "stop 5; " + finish_code(ErrorCode::kNotFinite));
}

TEST_CASE("a snapshot that is asked for waits for a run with a finite loss, or is none") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  step(master, 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(master.trained(5, 0, 1, nan).starts_with("train 5 run 2"));
  CHECK(master.on(master_event::SnapshotRequested{}).empty());
  CHECK(master.noted("it waits for a run with a finite loss"));
  SECTION("it comes") {
    master.trained(5, 0, 2);
    CHECK(master.merged(1, 2).ends_with("snapshot 2"));
  }
  SECTION("it does not come") {
    for (std::uint64_t run = 2; run < 10; ++run) master.trained(5, 0, run, nan);
    CHECK(master.trained(5, 0, 10, nan) == "stop 5; " + finish_code(ErrorCode::kNotFinite));
  }
  SECTION("somebody stops the master before") {
    CHECK(master.on(master_event::StopRequested{"SIGTERM"}) == "stop 5; snapshot 1");
    CHECK(master.noted("1 run since iteration 1 had no finite loss"));
  }
}

TEST_CASE("a snapshot that the shell finds to be of diverged weights ends training as diverged") {
  MasterDriver master(config_for(1, 1));
  master.join(5, 0);
  CHECK(step(master, 0) == "stop 5; snapshot 1");
  CHECK(master.on(master_event::SnapshotFailed{{ErrorCode::kNotFinite, "diverged"}}) ==
        finish_code(ErrorCode::kNotFinite));
}

TEST_CASE("an earlier snapshot that fails while the end comes is still only a warning") {
  MasterConfig config = config_for(1, 2);
  config.snapshot_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  step(master, 0);
  CHECK(step(master, 1) == "stop 5");
  CHECK(master.on(master_event::SnapshotFailed{kDiskGone}) == "snapshot 2");
  CHECK(master.snapshot_done(2) == "finish");
}

TEST_CASE("a last test that fails is an error, and keeps no snapshot from being written") {
  MasterConfig config = config_for(1, 1);
  config.test_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  step(master, 0);
  CHECK(master.on(master_event::TestFailed{{ErrorCode::kData, "no records"}}) == "snapshot 1");
  CHECK(master.snapshot_done(1) == finish_code(ErrorCode::kData));
}

TEST_CASE("a merge that fails ends training with its error, after a snapshot") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  step(master, 0);
  master.trained(5, 0, 1);
  CHECK(master.on(master_event::MergeFailed{{1}, {ErrorCode::kUnavailable, "store gone"}}) ==
        refused(5) + "; snapshot 1");
  CHECK(master.on(master_event::SnapshotFailed{kDiskGone}).empty());
  CHECK(master.on(master_event::StopRequested{"SIGTERM"}) == "snapshot 1");
  CHECK(master.on(master_event::SnapshotFailed{kDiskGone}) == finish_code(ErrorCode::kUnavailable));
  CHECK(master.noted(kDiskGone.message));
  CHECK(master.error->message == "store gone");
}

TEST_CASE("a store that is gone for good ends training with its error, after a snapshot") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  step(master, 0);
  const Error gone{ErrorCode::kUnavailable, "store gone"};
  CHECK(master.on(master_event::StoreLost{gone}) == refused(5) + "; snapshot 1");
  CHECK(master.on(master_event::StoreLost{gone}).empty());
  CHECK(master.hello(5) == refused(5));  // it connects again while the snapshot is written
  CHECK(master.snapshot_done(1) == finish_code(ErrorCode::kUnavailable));
}

TEST_CASE("an error that starting again meets again stops the workers; a full store does not") {
  for (const ErrorCode error : {ErrorCode::kRefused, ErrorCode::kCannotWrite, ErrorCode::kInternal,
                                ErrorCode::kTimeout, ErrorCode::kFull}) {
    CAPTURE(static_cast<int>(error));
    const bool again = error == ErrorCode::kTimeout || error == ErrorCode::kFull;
    const std::string away = again ? refused(5) : "stop 5";
    MasterDriver master(config_for(2, 100));
    master.join(5, 0);
    CHECK(master.on(master_event::StoreLost{{error, "no"}}) == away + "; " + finish_code(error));
    CHECK(another_follows(master.error) == again);
  }
  CHECK(!another_follows(std::nullopt));
}

TEST_CASE("a store that is gone before training has begun leaves nothing to save") {
  MasterDriver master(config_for(2, 100));
  master.join(5, 0);
  CHECK(master.on(master_event::StoreLost{{ErrorCode::kUnavailable, "store gone"}}) ==
        refused(5) + "; " + finish_code(ErrorCode::kUnavailable));
}

TEST_CASE("a fault of the store that the last worker met ends training with it") {
  MasterDriver master(config_for(2, 100));
  master.join(5, 0);
  master.join(6, 1);
  const auto full = static_cast<std::uint32_t>(ErrorCode::kFull);
  CHECK(master.on(master_event::Leave{{5}, {0, full, "Redis is full"}}).empty());
  CHECK(master.on(master_event::Leave{{6}, {1, full, "Redis is full"}}) ==
        finish_code(ErrorCode::kFull));
}

TEST_CASE("a worker that the store refuses ends alone: the next one may bring the password") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  const auto no_password = static_cast<std::uint32_t>(ErrorCode::kRefused);
  CHECK(master.on(master_event::Leave{{5}, {0, no_password, "NOAUTH"}}).empty());
  master.join(6, 1);
  CHECK(!master.error);
}

TEST_CASE("what the last worker says is cut before it becomes the master's error") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  const auto full = static_cast<std::uint32_t>(ErrorCode::kFull);
  master.on(master_event::Leave{{5}, {0, full, std::string(100000, 'a')}});
  REQUIRE(master.error);
  CHECK(master.error->message.size() == kTextMax);
}

TEST_CASE("a merge that fails during a stop makes it an error") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  master.trained(5, 0, 0);
  master.on(master_event::StopRequested{"SIGTERM"});
  CHECK(master.on(master_event::MergeFailed{{0}, {ErrorCode::kFull, "store full"}}) ==
        finish_code(ErrorCode::kFull));
}

TEST_CASE("a merge that a store out of reach keeps from a stopped master is left out") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  master.trained(5, 0, 0);
  master.on(master_event::StopRequested{"SIGTERM"});
  CHECK(master.on(master_event::MergeFailed{{0}, {ErrorCode::kTimeout, "Redis: no answer"}}) ==
        "finish");
  CHECK(master.noted("Redis: no answer"));
}

TEST_CASE("superseded: the end at once, nothing is written; workers look for the new master") {
  MasterConfig config = config_for(3, 100);
  config.test_interval = 1;
  MasterDriver master(config);
  const Error superseded{ErrorCode::kSuperseded, "term 9 has the job"};
  const auto away = static_cast<int>(ErrorCode::kUnavailable);
  const std::string end = fmt::format(
      "refuse 5 code {0}; refuse 6 code {0}; refuse 7 code {0}; "
      "refuse 8 code {0}; {1}",
      away, finish_code(ErrorCode::kSuperseded));
  master.join(5, 0);
  master.join(6, 1);
  master.join(7, 2);
  master.hello(8);
  master.trained(5, 0, 0);
  SECTION("by the store") {}
  SECTION("by a merge") { CHECK(master.on(master_event::MergeFailed{{0}, superseded}) == end); }
  SECTION("with a test and a merge under way") {
    CHECK(master.merged(0, 1).ends_with("test 1"));
    master.trained(6, 1, 1);
  }
  if (!master.session.finished()) CHECK(master.on(master_event::StoreLost{superseded}) == end);
  CHECK(master.error->message == superseded.message);
  CHECK(master.session.finished());
  CHECK(master.hello(9).empty());
}

TEST_CASE("superseded between stages or while it ends: the end at once") {
  const Error superseded{ErrorCode::kSuperseded, "term 9 has the job"};
  MasterConfig config = config_for(1, 2);
  config.stages = {Schedule{}, Schedule{}};
  config.stages[0].iterations = 1;
  MasterDriver between(config);
  between.join(5, 0);
  CHECK(step(between, 0) == "enter 1");
  CHECK(between.on(master_event::StageFailed{superseded}) ==
        fmt::format("refuse 5 code {}; ", static_cast<int>(ErrorCode::kUnavailable)) +
            finish_code(ErrorCode::kSuperseded));
  MasterDriver ending(config_for(1, 1));
  ending.join(5, 0);
  CHECK(step(ending, 0) == "stop 5; snapshot 1");
  CHECK(ending.on(master_event::StoreLost{superseded}) == finish_code(ErrorCode::kSuperseded));
}

}  // namespace speedo
