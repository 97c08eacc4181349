#include "support/catch.hpp"

#include <limits>

#include "master_session_driver.hpp"

namespace speedo {

namespace {

Schedule stage(const std::string& strategy, std::uint64_t iterations) {
  Schedule schedule;
  schedule.strategy.name = strategy;
  schedule.iterations = iterations;
  return schedule;
}

MasterConfig staged(std::uint64_t workers, std::vector<Schedule> stages) {
  MasterConfig config = config_for(workers, 100);
  config.stages = std::move(stages);
  return config;
}

// Two workers in the first, asynchronous stage, which ended with the merge of worker 0.
struct Draining : MasterDriver {
  explicit Draining(const MasterConfig& config_in = staged(2, {stage("async", 1),
                                                               stage("sync", 10)}))
      : MasterDriver(config_in) {
    join(5, 0);
    join(6, 1);
    CHECK(trained(5, 0, 0) == "merge 0 it 0: 0.0");
    CHECK(merged(0, 1).empty());
  }
};

// Merges what worker 0 reports, and keeps the rest for ever.
struct Keeper : Strategy {
  Commands on(const Event& event) override {
    Commands commands;
    if (const auto* joined = std::get_if<Joined>(&event)) {
      for (const WorkerId worker : joined->workers) commands.push_back(Train{worker});
    }
    const auto* trained = std::get_if<Trained>(&event);
    if (trained != nullptr && trained->worker.value == 0) commands.push_back(Merge{{0}});
    return commands;
  }
};

Result<std::unique_ptr<Strategy>> make_keeper_or_other(const StrategyOptions& options) {
  if (options.name != "async") return make_strategy(options);
  return Result<std::unique_ptr<Strategy>>(std::make_unique<Keeper>());
}

}  // namespace

TEST_CASE("a stage ends with its iterations: runs under way are merged, then the next begins") {
  Draining master;
  CHECK(master.trained(6, 1, 1) == "merge 1 it 1: 1.1");
  CHECK(master.last_merge.stage == 0);
  CHECK(master.merged(1, 2) == "enter 1");
  CHECK(master.session.progress().stage == 1);
  CHECK(master.noted("stage 2 (sync) begins at iteration 2"));
  CHECK(master.entered(3) ==
        "train 5 run 2 it 2 v 3 data 2/4; train 6 run 3 it 2 v 3 data 3/5");
  CHECK(master.trains[5].stage == 1);
  master.trained(5, 0, 2);
  CHECK(master.trained(6, 1, 3) == "mean 2 it 2: 0.2 1.3");
  CHECK(master.last_merge.stage == 1);
}

TEST_CASE("what is merged while a stage ends counts as the next one's, which ends no later") {
  Draining master(staged(2, {stage("async", 1), stage("sync", 2)}));
  master.trained(6, 1, 1);
  CHECK(master.merged(1, 2) == "enter 1");
  CHECK(master.session.progress().stage_start == 1);
  master.entered(3);
  master.trained(5, 0, 2);
  CHECK(master.trained(6, 1, 3) == "mean 2 it 2: 0.2 1.3");
  CHECK(master.merged(2, 4) == "enter 0");
  CHECK(master.session.progress().iteration == 3);
  CHECK(master.noted("stage 1 (async) begins at iteration 3"));
}

TEST_CASE("a stage of which nothing is left is left out, and that is said") {
  Draining master(staged(2, {stage("async", 1), stage("sync", 1), stage("ssp", 10)}));
  master.trained(6, 1, 1);
  CHECK(master.merged(1, 2) == "enter 2");
  CHECK(master.noted("a stage is left out"));
  CHECK(master.noted("stage 3 (ssp) begins at iteration 2"));
}

TEST_CASE("a state saved while a stage ends goes on where the job itself would") {
  const MasterConfig config = staged(2, {stage("async", 1), stage("sync", 2), stage("ssp", 10)});
  Draining old(config);
  old.trained(6, 1, 1);
  const std::string state = old.last_merge.state;
  old.merged(1, 2);
  MasterDriver master(config);
  REQUIRE(master.session.restore(state));
  CHECK(master.session.progress().stage == old.session.progress().stage);
  CHECK(master.session.progress().stage_start == old.session.progress().stage_start);
}

TEST_CASE("stages repeat until the last iteration of the job") {
  MasterConfig config = staged(1, {stage("sync", 1), stage("async", 2)});
  config.max_iteration = 5;
  MasterDriver master(config);
  master.join(5, 0);
  std::string trace;
  std::uint64_t version = 0;
  for (std::uint64_t run = 0; run < 5; ++run) {
    master.trained(5, 0, run);
    std::string text = master.merged(run, ++version);
    if (text.starts_with("enter")) {
      trace += text + " ";
      text = master.entered(++version);
    }
    CHECK((run == 4 || text.starts_with("train")));
  }
  CHECK(trace == "enter 1 enter 0 enter 1 ");
  CHECK(master.session.progress().iteration == 5);
  CHECK(master.snapshot_done(5) == "finish");
}

TEST_CASE("what the strategy parks at the end of a stage is discarded, its data are used") {
  MasterDriver master(staged(3, {stage("async", 1), stage("sync", 10)}), make_keeper_or_other);
  for (std::uint64_t i = 0; i < 3; ++i) master.join(5 + i, i);
  CHECK(master.trained(6, 1, 1).empty());
  master.trained(5, 0, 0);
  CHECK(master.merged(0, 1).empty());
  CHECK(master.trained(7, 2, 2) == "enter 1");
  CHECK(master.session.progress().discarded == 2);
  CHECK(master.entered(2) == "train 5 run 3 it 1 v 2 data 3/6; train 6 run 4 it 1 v 2 data 4/7; "
                             "train 7 run 5 it 1 v 2 data 5/8");
}

TEST_CASE("the death of the last one at work ends the drain; its data come back") {
  Draining master;
  CHECK(master.lost(6) == "enter 1");
  CHECK(master.entered(2) == "train 5 run 2 it 1 v 2 data 2/1");
}

TEST_CASE("a run without a finite loss ends the drain like any other") {
  Draining master;
  CHECK(master.trained(6, 1, 1, std::numeric_limits<float>::quiet_NaN()) == "enter 1");
}

TEST_CASE("a contribution that is rejected in the drain does not hold it up") {
  Draining master;
  master.trained(6, 1, 1);
  CHECK(master.merged(1, 1, {{1}}) == "enter 1");
  CHECK(master.session.progress().iteration == 1);
}

TEST_CASE("who joins during the drain or the change starts with the next stage") {
  Draining master;
  CHECK(master.join(7, 2).empty());
  CHECK(master.lost(6) == "enter 1");
  CHECK(master.join(8, 3).empty());
  CHECK(master.entered(2) == "train 5 run 2 it 1 v 2 data 2/4; train 7 run 3 it 1 v 2 data 1/5; "
                             "train 8 run 4 it 1 v 2 data 3/6");
}

TEST_CASE("who dies during the change is not started; if nobody is left, the next that joins is") {
  Draining master;
  CHECK(master.lost(6) == "enter 1");
  CHECK(master.lost(5).empty());
  CHECK(master.entered(2).empty());
  CHECK(master.join(9, 2) == "train 9 run 2 it 1 v 2 data 1/2");
}

TEST_CASE("the last iteration of the job may come during a drain") {
  MasterConfig config = staged(2, {stage("async", 1), stage("sync", 10)});
  config.max_iteration = 2;
  Draining master(config);
  master.trained(6, 1, 1);
  CHECK(master.merged(1, 2) == "stop 5; stop 6; snapshot 2");
}

TEST_CASE("a stop during the change of stages waits for it, as for a merge") {
  Draining master;
  CHECK(master.lost(6) == "enter 1");
  CHECK(master.on(master_event::StopRequested{"x"}) == "stop 5");
  CHECK(master.entered(2) == "snapshot 1");
  CHECK(master.snapshot_done(1) == "finish");
}

TEST_CASE("a stage that cannot be entered ends training with its error") {
  Draining master;
  CHECK(master.lost(6) == "enter 1");
  CHECK(master.on(master_event::StageFailed{{ErrorCode::kFull, "store full"}}) ==
        fmt::format("refuse 5 code {}; snapshot 1", static_cast<int>(ErrorCode::kUnavailable)));
  CHECK(master.snapshot_done(1) ==
        fmt::format("finish code {}", static_cast<int>(ErrorCode::kFull)));
}

TEST_CASE("each stage has its own interval between tests") {
  Schedule first = stage("sync", 2), second = stage("sync", 10);
  first.test_interval = 0;
  second.test_interval = 3;
  MasterConfig config = staged(1, {first, second});
  config.test_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  master.trained(5, 0, 0);
  CHECK(master.merged(0, 1) == "train 5 run 1 it 1 v 1 data 1/2");
  master.trained(5, 0, 1);
  CHECK(master.merged(1, 2) == "enter 1");
  master.entered(3);
  master.trained(5, 0, 2);
  CHECK(master.merged(2, 4) == "train 5 run 3 it 3 v 4 data 3/4; test 3");
}

TEST_CASE("what is merged while a stage ends is tested by the interval of its own stage") {
  Schedule first = stage("async", 1), second = stage("sync", 10);
  const bool second_tests = GENERATE(true, false);
  first.test_interval = second_tests ? 0 : 2;
  second.test_interval = second_tests ? 2 : 0;
  MasterConfig config = staged(2, {first, second});
  SECTION("of the stage that follows") {
    Draining master(config);
    master.trained(6, 1, 1);
    CHECK(master.merged(1, 2) == (second_tests ? "test 2; enter 1" : "enter 1"));
  }
  SECTION("at the end of the job") {
    config.max_iteration = 2;
    Draining master(config);
    master.trained(6, 1, 1);
    CHECK(master.merged(1, 2) ==
          (second_tests ? "stop 5; stop 6; test 2" : "stop 5; stop 6; snapshot 2"));
  }
}

TEST_CASE("a job that goes on at its end tests by the interval of the stage that ended there") {
  Schedule first = stage("async", 3), second = stage("sync", 5);
  const bool first_tests = GENERATE(true, false);
  const std::uint64_t end = GENERATE(as<std::uint64_t>{}, 0, 3, 5, 8, 11);
  CAPTURE(first_tests, end);
  first.test_interval = first_tests ? 2 : 0;
  second.test_interval = first_tests ? 0 : 2;
  MasterConfig config = staged(1, {first, second});
  config.start_iteration = config.max_iteration = end;
  MasterDriver master(config);
  const bool is_first = end <= 3 || end == 11;
  CHECK(master.tick(0) == fmt::format("{} {}", is_first == first_tests ? "test" : "snapshot", end));
}

TEST_CASE("a snapshot that falls due at the end of a stage is taken before the next is entered") {
  MasterConfig config = staged(1, {stage("sync", 2), stage("async", 10)});
  config.snapshot_interval = 1;
  MasterDriver master(config);
  master.join(5, 0);
  master.trained(5, 0, 0);
  CHECK(master.merged(0, 1) == "train 5 run 1 it 1 v 1 data 1/2; snapshot 1");
  master.trained(5, 0, 1);
  CHECK(master.merged(1, 2).empty());
  CHECK(master.snapshot_done(1) == "snapshot 2; enter 1");
}

TEST_CASE("the learning rate grows over the warm-up of each stage, with the workers") {
  Schedule scaled = stage("sync", 3);
  scaled.lr_scaling = LrScaling::kLinear;
  scaled.lr_warmup = 2;
  MasterDriver master(staged(2, {scaled, scaled}));
  master.join(5, 0);
  master.join(6, 1);
  std::vector<float> scales;
  std::uint64_t run = 0, version = 0;
  for (std::uint64_t round = 0; round < 4; ++round) {
    scales.push_back(std::bit_cast<float>(master.trains[6].lr_scale_bits));
    const MasterProgress& now = master.session.progress();
    CHECK(lr_scale(scaled, now.iteration - now.stage_start, now.workers_alive) == scales.back());
    master.trained(5, 0, run);
    master.trained(6, 1, run + 1);
    CHECK(master.last_merge.lr_scale == scales.back());
    if (master.merged(round, ++version) == "enter 1") master.entered(++version);
    run += 2;
  }
  CHECK(scales == std::vector<float>{1.0F, 1.5F, 2.0F, 1.0F});
}

TEST_CASE("the learning rate of a run follows the workers of its round, not those that wait") {
  Schedule scaled = stage("sync", 0);
  scaled.lr_scaling = LrScaling::kLinear;
  MasterDriver master(staged(2, {scaled}));
  const auto scale = [&](std::uint64_t peer) {
    return std::bit_cast<float>(master.trains[peer].lr_scale_bits);
  };
  master.join(5, 0);
  master.join(6, 1);
  CHECK(scale(6) == 2.0F);
  master.trained(5, 0, 0);
  master.trained(6, 1, 1);
  CHECK(master.join(7, 2).empty());
  CHECK(master.merged(0, 1) == "train 5 run 2 it 1 v 1 data 2/4; train 6 run 3 it 1 v 1 data 3/5");
  CHECK(scale(5) == 2.0F);
  CHECK(scale(6) == 2.0F);
  master.trained(5, 0, 2);
  master.trained(6, 1, 3);
  CHECK(master.last_merge.lr_scale == 2.0F);
  // One whose contribution is lost does its run again as it was.
  CHECK(master.merged(1, 1, {{1}}) == "train 6 run 4 it 1 v 1 data 3/5");
  CHECK(scale(6) == 2.0F);
  CHECK(master.trained(6, 1, 4) == "mean 2 it 1: 0.2 1.4");
  master.merged(2, 2);
  CHECK(scale(5) == 3.0F);
  CHECK(scale(7) == 3.0F);
}

TEST_CASE("names of groups that are not here, and workers that no group lists, are said") {
  Schedule grouped = stage("grouping", 0);
  grouped.strategy.groups = {{"host5", "ghost"}, {"host6/1/0"}};
  MasterDriver master(staged(3, {grouped}));
  master.join(5, 0);
  master.join(6, 1);
  master.join(7, 2);
  CHECK(master.noted("groups list workers that are not here: ghost"));
  CHECK(master.noted("workers that no group lists: host7/1/0"));
}

}  // namespace speedo
