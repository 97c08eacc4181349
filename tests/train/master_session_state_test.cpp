#include "support/catch.hpp"

#include "speedo.pb.h"

#include "master_session_driver.hpp"

namespace speedo {

namespace {

record::Session decode(const std::string& bytes) {
  record::Session state;
  REQUIRE(state.ParseFromString(bytes));
  return state;
}

std::vector<std::uint64_t> open_shares(const record::Session& state) {
  return {state.data_open().begin(), state.data_open().end()};
}

MasterConfig two_stages() {
  MasterConfig config = config_for(2, 100);
  config.stages = {Schedule{}, Schedule{}};
  config.stages[0].strategy.name = "sync";
  config.stages[0].iterations = 2;
  return config;
}

// A round of two workers on connections 5 and 6.
std::string round(MasterDriver& master, std::uint64_t number, std::uint64_t first_worker = 0) {
  master.trained(5, first_worker, master.trains[5].run, 1.0F, number);
  master.trained(6, first_worker + 1, master.trains[6].run, 1.0F, number);
  return master.merged(master.last_merge.merge.value, number + 1);
}

// What a worker computes with, whoever it is.
std::string work(const MasterDriver& master) {
  std::string text;
  for (const auto& [peer, m] : master.trains) {
    text += fmt::format("{}: it {} v {} data {}/{} x{} stage {} scale {}; ", peer, m.iteration,
                        m.version, m.first_step, m.next_step, m.shards, m.stage,
                        m.lr_scale_bits);
  }
  return text;
}

}  // namespace

TEST_CASE("a merge carries the state as of its end") {
  MasterDriver master(config_for(2, 100), "async");
  master.join(5, 0);
  master.join(6, 1);                                          // data 0/2, 1/3
  master.trained(5, 0, 0);
  master.trained(6, 1, 1);
  const record::Session first = decode(master.last_merge.state);
  CHECK(first.iteration() == 1);
  CHECK(first.merges() == 1);
  CHECK(first.contributions() == 1);
  CHECK(first.samples() == 10);
  CHECK(first.next_worker() == 2);
  CHECK(first.next_run() == 2);
  CHECK(first.data_fresh() == 4);
  CHECK(open_shares(first) == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(open_shares(decode(master.session.save())) == std::vector<std::uint64_t>{0, 1, 2, 3});
  master.merged(0, 1);
  const record::Session second = decode(master.last_merge.state);
  CHECK(second.iteration() == 2);
  CHECK(second.staleness_sum() == 1.0);
  CHECK(open_shares(second) == std::vector<std::uint64_t>{2, 3, 4});
}

TEST_CASE("a new master goes on: counters, iteration, data; runs and workers get new numbers") {
  MasterConfig config = config_for(2, 100);
  MasterDriver old(config, "sync");
  old.join(5, 0);
  old.join(6, 1);
  round(old, 0);
  round(old, 1);
  const std::string state = old.last_merge.state;

  config.first_version = {2};
  config.first_run = 1000000;
  config.start_iteration = 77;     // the state knows better
  MasterDriver master(config, "sync");
  REQUIRE(master.session.restore(state));
  CHECK(master.session.progress().iteration == 2);
  CHECK(master.session.progress().merges == 2);
  CHECK(master.session.progress().contributions == 4);
  CHECK(master.session.progress().samples == 40);
  CHECK(master.session.progress().workers_joined == 2);
  CHECK(master.session.progress().worker_ids == 2);
  CHECK(decode(master.session.save()).data_fresh() == 6);   // as it was when round 1 was merged
  CHECK(master.hello(5) == "welcome 5 as 2");
  master.ready(5, 2);
  CHECK(master.join(6, 3) == "train 5 run 1000000 it 2 v 2 data 4/6; "
                             "train 6 run 1000001 it 2 v 2 data 5/7");
  CHECK(work(master) == work(old));
}

TEST_CASE("a job keeps in mind whether its workers computed") {
  MasterDriver old(config_for(1, 100));
  REQUIRE_FALSE(decode(old.session.save()).has_emulated());
  old.join(5, 0);
  old.trained(5, 0, 0);
  CHECK(decode(old.session.save()).has_emulated());
  CHECK_FALSE(decode(old.session.save()).emulated());
  MasterDriver master(config_for(1, 100));
  REQUIRE(master.session.restore(old.session.save()));
  CHECK(decode(master.session.save()).has_emulated());
}

TEST_CASE("numbers of runs never fall behind those of the master before") {
  MasterDriver old(config_for(1, 100));
  old.join(5, 0);
  for (std::uint64_t i = 0; i < 5; ++i) {
    old.trained(5, 0, i);
    old.merged(i, i + 1);
  }
  MasterDriver master(config_for(1, 100));
  REQUIRE(master.session.restore(old.session.save()));
  CHECK(master.join(5, 1) == "train 5 run 6 it 5 v 0 data 5/6");
}

// Whatever moment the old master dies at, the new one orders the very same work.
TEST_CASE("a synchronous job that is resumed orders the same work as one that never stopped") {
  MasterConfig config = two_stages();
  config.stages[1].strategy.name = "sync";
  config.stages[1].update.steps_per_run = 4;
  const auto advance = [](MasterDriver& master, std::uint64_t& version, std::uint64_t worker) {
    const std::string text = round(master, version, worker);
    version += 1;
    if (text.starts_with("enter")) master.entered(++version);
  };
  for (std::uint64_t death = 0; death < 6; ++death) {
    config.first_version = {0};
    MasterDriver whole(config), first(config);
    for (MasterDriver* master : {&whole, &first}) {
      master->join(5, 0);
      master->join(6, 1);
    }
    std::uint64_t whole_version = 0, version = 0;
    for (std::uint64_t i = 0; i < 6; ++i) advance(whole, whole_version, 0);
    for (std::uint64_t i = 0; i < death; ++i) advance(first, version, 0);
    if (death == 3) first.trained(5, 0, first.trains[5].run);   // reported, not merged

    config.first_version = {version};
    MasterDriver second(config);
    REQUIRE(second.session.restore(first.session.save()));
    second.join(5, 2);
    second.join(6, 3);
    for (std::uint64_t i = death; i < 6; ++i) advance(second, version, 2);
    CHECK(work(second) == work(whole));
  }
}

TEST_CASE("a new master tells of merges that the one before could not tell of any more") {
  MasterConfig config = config_for(1, 100);
  config.stages.resize(1);
  config.stages[0].update.codec.kind = CodecKind::kTopK;
  MasterDriver old(config, "async");
  old.hello(5, "w", 77);
  old.ready(5, 0);
  const std::uint64_t run = old.trains[5].run;
  old.trained(5, 0, run);
  const std::string with_merge = old.last_merge.state;
  old.merged(0, 1);
  // It may not have heard of the order, either.
  const std::string told_in_vain = old.session.save();
  for (const std::string& state : {with_merge, told_in_vain}) {
    MasterDriver master(config, "async");
    REQUIRE(master.session.restore(state));
    master.hello(5, "w", 77);
    master.ready(5, 1);
    CHECK(master.trains[5].merged_run == run);
    // Another process has nothing to be told of.
    master.hello(6, "v", 78);
    master.ready(6, 2);
    CHECK(master.trains[6].merged_run == kNoRun);
    CHECK(decode(master.session.save()).SerializeAsString() == master.session.save());
  }
  // Where nothing depends on it, states are short.
  MasterDriver plain(config_for(1, 100), "async");
  plain.hello(5, "w", 77);
  plain.ready(5, 0);
  plain.trained(5, 0, plain.trains[5].run);
  CHECK(decode(plain.last_merge.state).told_size() == 0);
}

TEST_CASE("what another strategy kept is of no use, and no hindrance") {
  MasterConfig config = config_for(1, 100);
  config.stages.resize(1);
  config.stages[0].strategy.group_count = 2;
  MasterDriver old(config, "grouping");
  old.join(5, 0);
  for (std::uint64_t merge = 0; merge < 5; ++merge) {
    old.trained(5, 0, old.trains[5].run, 1.0F, merge, 1000);
    old.merged(merge, merge + 1);
  }
  const std::string state = old.last_merge.state;
  REQUIRE(decode(state).strategy_name() == "grouping");
  MasterDriver other(config_for(1, 100), "sync");
  REQUIRE(other.session.restore(state));
  MasterDriver same(config, "grouping");
  REQUIRE(same.session.restore(state));
}

TEST_CASE("a state at the end of a stage goes on with the next one") {
  MasterDriver old(two_stages());
  old.join(5, 0);
  old.join(6, 1);
  round(old, 0);
  CHECK(round(old, 1) == "enter 1");
  const record::Session between = decode(old.last_entry.state);
  CHECK(between.stage() == 1);
  CHECK(between.stage_start() == 2);
  for (const std::string& state : {old.last_merge.state, old.last_entry.state}) {
    MasterDriver master(two_stages());
    REQUIRE(master.session.restore(state));
    CHECK(master.session.progress().stage == 1);
    master.join(5, 2);
    CHECK(master.join(6, 3).starts_with("train 5"));
    CHECK(master.trains[5].stage == 1);
    CHECK(decode(master.session.save()).SerializeAsString() == master.session.save());
  }
}

TEST_CASE("longer runs begin with the data that no run before was trained on") {
  MasterConfig config = two_stages();
  config.stages[1].strategy.name = "sync";
  config.stages[1].update.steps_per_run = 3;
  MasterDriver old(config);
  old.join(5, 0);
  old.join(6, 1);
  round(old, 0);
  CHECK(round(old, 1) == "enter 1");
  CHECK(old.entered(3) == "train 5 run 4 it 2 v 3 data 4/10; train 6 run 5 it 2 v 3 data 7/13");
  round(old, 3);
  for (const std::uint32_t steps : {1U, 2U, 3U}) {
    config.stages[1].update.steps_per_run = steps;
    MasterDriver master(config);
    REQUIRE(master.session.restore(old.session.save()));
    master.join(5, 2);
    master.join(6, 3);
    CHECK(master.trains[5].first_step == 10);
    CHECK(master.trains[6].first_step == 10 + steps);
  }
}

TEST_CASE("the step at which one that reads alone goes on from a state") {
  MasterConfig config = config_for(2, 100);
  config.first_step = 7;
  config.stages[0].update.steps_per_run = 3;
  const auto next = [](const MasterDriver& master) {
    return MasterSession::next_step_of(master.session.save()).value();
  };
  MasterDriver rounds(config, "sync");
  CHECK(next(rounds) == 7);
  rounds.join(5, 0);
  rounds.join(6, 1);
  CHECK(next(rounds) == 7);
  round(rounds, 0);
  CHECK(next(rounds) == 7 + 6);
  // Worker 1 does not get on; its run began with step 10.
  MasterDriver other(config, "async");
  other.join(5, 0);
  other.join(6, 1);
  for (std::uint64_t i = 0; i < 3; ++i) {
    other.trained(5, 0, other.trains[5].run);
    other.merged(i, i + 1);
  }
  CHECK(open_shares(decode(other.session.save())) == std::vector<std::uint64_t>{1, 3, 5, 6});
  CHECK(next(other) == 7 + 5 * 3);
  CHECK(MasterSession::next_step_of("damaged").error().code == ErrorCode::kCorrupt);
  record::Session far = decode(other.session.save());
  far.set_data_steps(std::uint64_t{1} << 61U);
  CHECK(MasterSession::next_step_of(far.SerializeAsString()).error().code == ErrorCode::kCorrupt);
}

TEST_CASE("what a slow worker had reserved goes on in runs of another length, a resume's too") {
  MasterConfig config = two_stages();
  for (Schedule& stage : config.stages) stage.strategy.name = "async";
  config.stages[0].iterations = 3;
  config.stages[0].update.steps_per_run = 3;
  config.stages[1].update.steps_per_run = 2;
  config.offset_shards = GENERATE(false, true);  // its shards are no data that could be left out
  MasterDriver old(config);
  old.join(5, 0);
  old.join(6, 1);  // steps 0/6 and 3/9
  for (std::uint64_t merge = 0; merge < 3; ++merge) {
    old.trained(5, 0, old.trains[5].run);
    old.merged(merge, merge + 1);
  }
  CHECK(old.trains[5].next_step == 15);
  old.trained(6, 1, old.trains[6].run);
  CHECK(old.merged(3, 4) == "enter 1");
  CHECK(old.noted("1 step of the data is left out, in 1 place") != config.offset_shards);
  CHECK(MasterSession::next_step_of(old.last_entry.state).value() == 15);
  CHECK(old.entered(5) == "train 5 run 4 it 4 v 5 data 9/17; train 6 run 5 it 4 v 5 data 15/19");
  for (const bool is_new : {true, false}) {
    record::Session entry = decode(old.last_entry.state);
    REQUIRE(entry.data_left_size() == 2);
    if (!is_new) {
      entry.clear_data_left();
      entry.clear_data_steps();
      entry.set_data_steps_whole(2);
    }
    config.stages[1].update.steps_per_run = 1;
    MasterDriver master(config);
    REQUIRE(master.session.restore(entry.SerializeAsString()));
    master.join(5, 2);
    master.join(6, 3);
    CHECK(master.trains[5].first_step == 9);
    CHECK(master.trains[6].first_step == 10);
    CHECK(master.trains[5].next_step == (is_new ? 11 : 15));
    CHECK(decode(master.session.save()).SerializeAsString() == master.session.save());
  }
}

TEST_CASE("a state within a stage ends it when the rest is done") {
  MasterDriver old(two_stages());
  old.join(5, 0);
  old.join(6, 1);
  round(old, 0);
  MasterDriver master(two_stages());
  REQUIRE(master.session.restore(old.session.save()));
  CHECK(master.session.progress().stage == 0);
  master.join(5, 2);
  master.join(6, 3);
  CHECK(round(master, 1, 2) == "enter 1");
}

TEST_CASE("a job that was at its end has only its end left, with the snapshot") {
  MasterConfig config = config_for(1, 1);
  MasterDriver old(config);
  old.join(5, 0);
  old.trained(5, 0, 0);
  MasterDriver master(config);
  REQUIRE(master.session.restore(old.last_merge.state));
  CHECK(master.tick(0) == "snapshot 1");
  CHECK(master.hello(5) == "stop 5");
  CHECK(master.snapshot_done(1) == "finish");
  CHECK(!master.error);
}

TEST_CASE("after a stop what was reported and not merged is open") {
  MasterDriver master(config_for(2, 100), "sync");
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0);
  master.on(master_event::StopRequested{"x"});
  CHECK(open_shares(decode(master.session.save())) == std::vector<std::uint64_t>{0, 1, 2, 3});
}

TEST_CASE("the state of a job with other stages is refused, saying both") {
  MasterDriver old(config_for(1, 100));
  MasterDriver master(two_stages());
  const auto restored = master.session.restore(old.session.save());
  REQUIRE(!restored);
  CHECK(restored.error().code == ErrorCode::kMismatch);
  CHECK(restored.error().message.find("1 stages, this one has 2") != std::string::npos);
  CHECK(master.session.progress().iteration == 0);
}

TEST_CASE("a state names its training and its master, and a resumed one keeps the training") {
  MasterConfig config = config_for(1, 100);
  config.training = {7, 8};
  config.term = 9;
  MasterDriver old(config);
  old.join(5, 0);
  old.trained(5, 0, 0);
  const auto origin = MasterSession::origin_of(old.last_merge.state);
  REQUIRE(origin);
  CHECK(origin->training == TrainingId{7, 8});
  CHECK(origin->term == 9);
  CHECK(origin->iteration == 1);
  config.training = {1, 2};
  config.term = 10;
  MasterDriver master(config);
  CHECK(master.session.training() == TrainingId{1, 2});
  REQUIRE(master.session.restore(old.last_merge.state));
  CHECK(master.session.training() == TrainingId{7, 8});
  const auto resumed = MasterSession::origin_of(master.session.save());
  REQUIRE(resumed);
  CHECK(resumed->training == TrainingId{7, 8});
  CHECK(resumed->is_newer_than(*origin));       // the same iteration, of a later master
  CHECK_FALSE(origin->is_newer_than(*resumed));
  CHECK_FALSE(origin->is_newer_than(*origin));
  CHECK(MasterSession::origin_of("").error().code == ErrorCode::kCorrupt);
}

TEST_CASE("damaged state is refused, and changes nothing") {
  MasterDriver old(config_for(2, 100));
  old.join(5, 0);
  old.join(6, 1);
  for (std::uint64_t i = 0; i < 9; ++i) {
    old.trained(5, 0, old.trains[5].run);
    old.merged(i, i + 1);
  }
  record::Session last = decode(old.session.save());
  last.clear_emulated();  // the one field that a state need not have
  const std::string state = last.SerializeAsString();
  const auto refused = [](const std::string& bytes) {
    MasterDriver master(config_for(2, 100));
    const std::string before = master.session.save();
    const auto restored = master.session.restore(bytes);
    return !restored && restored.error().code == ErrorCode::kCorrupt &&
           master.session.save() == before;
  };
  for (std::size_t length = 0; length < state.size(); ++length) {
    CHECK(refused(state.substr(0, length)));
  }
  CHECK(refused("no state at all"));
  record::Session nameless = decode(state);
  nameless.clear_training_high();
  nameless.clear_training_low();
  nameless.clear_term();
  nameless.clear_data_steps();
  CHECK(refused(nameless.SerializeAsString()));
  const auto what_to_do = MasterSession::origin_of(nameless.SerializeAsString());
  CHECK(what_to_do.error().message.find("earlier version") != std::string::npos);
  CHECK(what_to_do.error().message.find("--snapshot") != std::string::npos);
  const auto changed = [&](auto change) {
    record::Session other = decode(state);
    change(other);
    return other.SerializeAsString();
  };
  CHECK(refused(changed([](auto& s) { s.set_stage_start(s.iteration() + 1); })));
  CHECK(refused(changed([](auto& s) { s.add_data_open(0); })));
  CHECK(refused(changed([](auto& s) { s.set_data_fresh(s.data_open(0)); })));
  CHECK(refused(changed([](auto& s) { s.set_data_shard(s.data_open(0) + 1); })));
  CHECK(refused(changed([](auto& s) { s.set_data_steps(UINT64_MAX); })));
  CHECK(refused(changed([](auto& s) { s.add_data_apart(0); })));
  CHECK(refused(changed([](auto& s) { s.add_data_left(0); })));
  CHECK(refused(changed([](auto& s) {
    s.add_data_left(s.data_step());
    s.add_data_left(1);
  })));
  CHECK(refused(changed([](auto& s) {
    s.set_data_step(100);
    s.add_data_left(0);
    s.add_data_left(s.data_steps());
  })));
  CHECK(refused(changed([](auto& s) { s.set_data_steps(std::uint64_t{1} << 32U); })));
  CHECK(refused(changed([](auto& s) { s.set_next_run(UINT64_MAX); })));
  CHECK(refused(changed([](auto& s) { s.set_staleness_sum(-1.0); })));
  CHECK(refused(changed([](auto& s) { s.set_strategy("of another schedule"); })));
  CHECK(!refused(changed([](auto&) {})));
}

}  // namespace speedo
