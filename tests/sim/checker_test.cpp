// The checkers themselves: each accepts what is right, and names what is wrong.

#include <memory>

#include "sim/check/lease_checker.hpp"
#include "sim/check/lineage.hpp"
#include "sim/check/schedule_checker.hpp"
#include "store/mastership.hpp"
#include "support/catch.hpp"

namespace speedo::sim {
namespace {

struct Merged {
  Violations violations;
  Lineage lineage{{UpdateSpec{}}, {0.0F, 0.0F}, {0.1F, 0.5F}, violations};
  master_command::StartMerge job{MergeId{1}, 0, {{WorkerId{3}, RunId{7}, 1.0F}}, false, 0, 1.0F,
                                 ""};
  MergeResult result{.version = Version{2}};
  Merger::Copy now{Version{2}, {1.0F, 2.0F}, {}, ""};
  std::vector<std::uint64_t> shards{0};

  Merged() {
    lineage.begin(5, Checkpoint{Version{0}, {0.0F, 0.0F}, {}, {}});
    lineage.entered_stage(5, Merger::Copy{Version{1}, {0.0F, 0.0F}, {}, ""});
    lineage.contributed(RunId{7}, {1.0F, 2.0F});
  }
  void merge() {
    lineage.merged({.term = 5, .job = job, .result = result, .now = now, .shards = shards});
  }
};

Trained reported(WorkerId worker, std::uint64_t run) {
  Trained event;
  event.worker = worker;
  event.run = RunId{run};
  return event;
}

KvPtr claim(const std::string& holder, std::uint64_t term, bool is_new,
            const MasterAnswer& answer = {}) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kClaim;
  operation->master.emplace();
  operation->master->holder = holder;
  operation->master->term = term;
  operation->master->is_new = is_new;
  operation->text = encode_answer(answer);
  return operation;
}

}  // namespace

TEST_CASE("the lineage accepts weights that are what was merged") {
  Merged merged;
  merged.merge();
  CHECK(merged.violations.first() == "");
  CHECK(merged.lineage.is_merged(5, 0));
  CHECK(!merged.lineage.is_merged(5, 1));
  merged.lineage.begin(6, Checkpoint{Version{2}, {1.0F, 2.0F}, {}, {}});
  CHECK(merged.violations.first() == "");
  CHECK(merged.lineage.is_merged(6, 0));
}

TEST_CASE("the lineage notices weights that are not what was merged") {
  Merged merged;
  merged.now.weights[1] = 2.1F;
  merged.merge();
  CHECK(merged.violations.first().starts_with("weights are not what was merged"));
}

TEST_CASE("the lineage notices a contribution and a shard of the data merged twice") {
  Merged twice;
  twice.merge();
  twice.now = {Version{3}, {2.0F, 4.0F}, {}, ""};
  twice.result.version = Version{3};
  twice.shards = {1};
  twice.merge();
  CHECK(twice.violations.first() == "a contribution merged twice");
  Merged twice_given;
  twice_given.shards = {4, 4};
  twice_given.merge();
  CHECK(twice_given.violations.first() == "a shard of the data merged twice");
  CHECK(std::string(twice_given.violations.check()) == "once");
}

TEST_CASE("the lineage notices a good contribution that was rejected, and unknown weights") {
  Merged rejected;
  rejected.result = {Version{1}, {WorkerId{3}}};
  rejected.now = {Version{2}, {0.0F, 0.0F}, {}, ""};
  rejected.merge();
  CHECK(rejected.violations.first() == "a good contribution of worker 3 was rejected");
  Merged unknown;
  unknown.lineage.begin(6, Checkpoint{Version{9}, {5.0F, 5.0F}, {}, {}});
  CHECK(unknown.violations.first() == "a master goes on from weights that nobody published");
}

TEST_CASE("the lineage notices a run with older weights than ordered when the next are known") {
  // Run 9 is ordered to read version 2, or a newer one, and begins with the weights of version 1.
  // What is merged next leads away from them, or back to them: then it may have read version 3.
  const auto next_merges = [](float change, auto end) {
    Merged merged;
    merged.merge();
    TrainMessage order;
    order.run = 9;
    order.version = 2;
    merged.lineage.check_base(5, order, {0.0F, 0.0F});
    CHECK(merged.violations.first() == "");
    merged.lineage.contributed(RunId{8}, {change, 2 * change});
    merged.job.contributions = {{WorkerId{3}, RunId{8}, 1.0F}};
    merged.result.version = Version{3};
    merged.shards = {1};
    merged.now = {Version{3}, {1.0F + change, 2.0F + 2 * change}, {}, ""};
    end(merged);
    return merged.violations.first();
  };
  const auto is_seen = [](Merged& merged) { merged.merge(); };
  const auto is_reckoned = [](Merged& merged) {
    merged.lineage.unseen({.term = 5,
                           .job = merged.job,
                           .result = merged.result,
                           .now = {},
                           .shards = merged.shards});
  };
  const auto is_unknown = [](Merged& merged) {
    merged.lineage.unseen(5, Version{3}, merged.shards);
  };
  const auto never_comes = [](Merged& merged) { merged.lineage.check_complete(5, 1, {}); };
  const std::string stale = "run 9 begins with weights of version 1 of master 5, ordered was 2";
  CHECK(next_merges(1.0F, is_seen) == stale);
  CHECK(next_merges(-1.0F, is_seen) == "");
  CHECK(next_merges(1.0F, is_reckoned) == stale);
  CHECK(next_merges(-1.0F, is_reckoned) == "");
  CHECK(next_merges(1.0F, is_unknown) == "");
  CHECK(next_merges(1.0F, never_comes) == stale);
}

TEST_CASE("the lineage notices a shard of the data that is lost") {
  Merged merged;
  merged.merge();
  merged.lineage.check_complete(5, 2, {1});
  CHECK(merged.violations.first() == "");
  merged.lineage.check_complete(5, 3, {1});
  CHECK(merged.violations.first() == "shard 2 of the data is lost");
}

TEST_CASE("the lease's checker notices a second master, and what a replaced one writes") {
  EventQueue queue;
  Violations second, stale, homeless;
  const auto nobody_is_dead = [](std::string_view) { return false; };
  LeaseChecker checker(queue, nobody_is_dead, second);
  checker.done(*claim("a", 1, true));
  checker.done(*claim("a", 1, false));
  CHECK(second.first() == "");
  checker.done(*claim("b", 2, true));
  CHECK(second.first() == "b is granted mastership while the lease of a lasts");
  CHECK(std::string(second.check()) == "lease");

  LeaseChecker other(queue, [](std::string_view name) { return name == "a"; }, stale);
  other.done(*claim("a", 1, true));
  other.done(*claim("b", 2, true));
  KvOperation write;
  write.kind = KvOperation::Kind::kSet;
  write.key = "speedo:{job}:weights:t1:s0:c0";
  other.asked_by_master(1, write);
  CHECK(stale.first() == "");
  write.key = "speedo:{job}:weights:m";
  other.asked_by_master(2, write);
  CHECK(stale.first() == "");
  other.asked_by_master(1, write);
  CHECK(stale.first().starts_with("a master that was replaced has changed"));
  LeaseChecker(queue, nobody_is_dead, homeless).begins(0);
  CHECK(homeless.first() == "a master begins that was granted nothing");
}

TEST_CASE("the lease's checker notices who asks again for a lease that it has heard is lost") {
  EventQueue queue;
  Violations violations;
  LeaseChecker checker(
      queue, [](std::string_view) { return false; }, violations);
  MasterAnswer held;
  held.kind = MasterAnswer::Kind::kHeld;
  const auto is_refused = [&](std::chrono::seconds when) {
    KvPtr operation = claim("a", 1, false, held);
    queue.run_until(when);
    checker.done(*operation);
    return operation;
  };
  for (int second = 1; second <= 3; ++second) {
    checker.unanswered(*is_refused(std::chrono::seconds{second}));
  }
  is_refused(std::chrono::seconds{4});
  is_refused(std::chrono::seconds{4});  // executed twice
  CHECK(violations.first() == "");
  is_refused(std::chrono::seconds{5});
  CHECK(violations.first() == "a master keeps on asking for a lease that it has lost");
}

TEST_CASE("a schedule's checker notices a bound that is passed") {
  StrategyOptions options;
  options.name = "ssp";
  options.staleness = 1;
  Violations violations;
  ScheduleChecker checker(options, violations);
  const WorkerId a{0}, b{1};
  const auto happens = [&](const Event& event, const Commands& commands) {
    checker.before(event);
    checker.after(event, commands);
  };
  happens(Joined{{a, b}}, {Train{a}, Train{b}});
  CHECK(checker.wants_run(a));
  happens(reported(a, 0), {Merge{a}, Train{a}});
  CHECK(violations.first() == "");
  happens(reported(a, 2), {Merge{a}, Train{a}});
  CHECK(violations.first() == "ssp: a run begins too far ahead of the slowest");
}

TEST_CASE("a schedule's checker notices one that is left out, or left without work") {
  StrategyOptions options;
  options.name = "sync";
  Violations left_out, idle;
  const WorkerId a{0}, b{1};
  ScheduleChecker sync(options, left_out);
  sync.before(Joined{{a, b}});
  sync.after(Joined{{a, b}}, {Train{a}, Train{b}});
  sync.before(reported(a, 0));
  sync.after(reported(a, 0), {});
  sync.before(reported(b, 1));
  sync.after(reported(b, 1), {Average{{b}}, Train{b}});
  CHECK(left_out.first() == "sync: the mean leaves one out");
  options.name = "async";
  ScheduleChecker async(options, idle);
  async.before(Joined{{a, b}});
  async.after(Joined{{a, b}}, {Train{a}});
  CHECK(idle.first() == "async: a live worker was left without work");
}

// Two elements, a part each.
TEST_CASE("the lineage lets a part that was opened anew go on with older histories, no others") {
  Violations violations;
  Lineage lineage{{{.kind = UpdateKind::kGradientOnly}}, {0.0F, 0.0F}, {0.1F, 0.5F}, violations};
  lineage.merged_in_parts({.parts = 2, .chunk_elements = 1, .interval = 1});
  lineage.begin(5, Checkpoint{Version{0}, {0.0F, 0.0F}, {}, {}});
  lineage.entered_stage(5, Merger::Copy{Version{1}, {0.0F, 0.0F}, {}, ""});
  const auto merge = [&](std::uint64_t number, std::vector<float> weights) {
    lineage.contributed(RunId{number}, {1.0F, 1.0F});
    const master_command::StartMerge job{
        MergeId{number}, 0, {{WorkerId{3}, RunId{number}, 1.0F}}, false, 0, 1.0F, ""};
    const MergeResult result{.version = Version{number + 1}};
    const std::vector<std::uint64_t> shards{number};
    lineage.merged({.term = 5,
                    .job = job,
                    .result = result,
                    .now = {Version{number + 1}, std::move(weights), {}, ""},
                    .shards = shards});
  };
  merge(1, {-0.1F, -0.1F});      // both histories are 0.1
  merge(2, {-0.25F, -0.25F});    // 0.15
  SECTION("part 1 has lost what it had since its first merge") {
    merge(3, {-0.425F, -0.4F});
    merge(4, {-0.6125F, -0.575F});
    CHECK(violations.first() == "");
  }
  SECTION("part 1 has something else") {
    merge(3, {-0.425F, -0.41F});
    CHECK(violations.first().starts_with("weights are not what was merged: element 1"));
  }
}

TEST_CASE("the lineage takes weights that nobody saw from what is seen next") {
  Merged merged;
  merged.lineage.unseen(5, Version{2}, merged.shards);
  CHECK(merged.lineage.is_merged(5, 0));
  merged.lineage.begin(6, Checkpoint{Version{2}, {3.0F, 4.0F}, {}, {}});
  CHECK(merged.violations.first() == "");
  merged.lineage.begin(7, Checkpoint{Version{3}, {3.0F, 4.0F}, {}, {}});
  CHECK(merged.violations.first() == "a master goes on from weights that nobody published");
}

TEST_CASE("the lineage gives data out again of a version that the store and its master took back") {
  Merged merged;
  const bool is_seen_whole = GENERATE(true, false);
  CAPTURE(is_seen_whole);
  if (is_seen_whole) {
    merged.lineage.merged({.term = 5,
                           .job = merged.job,
                           .result = merged.result,
                           .now = merged.now,
                           .shards = merged.shards,
                           .is_seen_by_another = true});
  } else {
    merged.lineage.unseen(5, Version{2}, merged.shards, true);
  }
  CHECK(merged.lineage.is_merged(5, 0));
  const MergeResult nothing{.version = Version{1}, .rejected = {WorkerId{3}}};
  const auto reject = [&] {
    merged.lineage.unseen(
        {.term = 5, .job = merged.job, .result = nothing, .now = {}, .shards = {}});
  };
  SECTION("not while the store has lost nothing") {
    reject();
    CHECK(merged.lineage.is_merged(5, 0));
  }
  SECTION("and what it publishes under that number is taken as it is") {
    merged.lineage.all_may_be_lost();
    reject();
    CHECK(!merged.lineage.is_merged(5, 0));
    merged.lineage.contributed(RunId{8}, {5.0F, 5.0F});
    merged.job.contributions.front().run = RunId{8};
    merged.now.weights = {5.0F, 5.0F};
    merged.merge();
    CHECK(merged.lineage.is_merged(5, 0));
    CHECK(merged.violations.first() == "");
  }
}

TEST_CASE("the lineage knows the weights of a stage that nobody saw") {
  Merged merged;
  merged.merge();
  merged.lineage.unseen_stage(5, Version{3});
  TrainMessage order;
  order.run = 8;
  order.version = 3;
  merged.lineage.check_base(5, order, {1.0F, 2.0F});
  CHECK(merged.violations.first() == "");
}

TEST_CASE("the lineage notices a run that begins with weights older than ordered") {
  Merged merged;
  merged.merge();
  TrainMessage order;
  order.run = 8;
  order.version = 2;
  merged.lineage.check_base(5, order, {0.0F, 0.0F});
  const auto merge_next = [&](const std::vector<float>& values, std::vector<float> weights) {
    merged.lineage.contributed(RunId{9}, values);
    merged.job.contributions.front().run = RunId{9};
    merged.shards = {1};
    merged.result.version = merged.now.version = Version{3};
    merged.now.weights = std::move(weights);
    merged.merge();
  };
  CHECK(merged.violations.first() == "");
  SECTION("told when the next version is known") {
    merge_next({1.0F, 1.0F}, {2.0F, 3.0F});
    CHECK(merged.violations.first() ==
          "run 8 begins with weights of version 1 of master 5, ordered was 2");
  }
  SECTION("not if that has the same values") {
    merge_next({-1.0F, -2.0F}, {0.0F, 0.0F});
    CHECK(merged.violations.first() == "");
  }
}

TEST_CASE("the lineage notices a run that begins with a replaced master's weights") {
  Merged merged;
  merged.merge();
  merged.lineage.begin(6, Checkpoint{Version{0}, {0.0F, 0.0F}, {}, {}});
  merged.lineage.entered_stage(6, Merger::Copy{Version{1}, {0.0F, 0.0F}, {}, ""});
  TrainMessage order;
  order.run = 8;
  order.version = 1;
  merged.lineage.check_base(6, order, {0.0F, 0.0F});
  CHECK(merged.violations.first() == "");
  merged.lineage.check_base(6, order, {1.0F, 2.0F});
  SECTION("told when the next version is known") {
    merged.lineage.entered_stage(6, Merger::Copy{Version{2}, {0.0F, 0.0F}, {}, ""});
    CHECK(merged.violations.first() ==
          "run 8 begins with weights of version 2 of master 5, ordered was 1");
  }
  SECTION("not if that has the same values") {
    merged.lineage.contributed(RunId{9}, {1.0F, 2.0F});
    merged.job.contributions.front().run = RunId{9};
    merged.shards = {1};
    merged.lineage.merged({.term = 6,
                           .job = merged.job,
                           .result = merged.result,
                           .now = merged.now,
                           .shards = merged.shards});
    CHECK(merged.violations.first() == "");
  }
}

TEST_CASE("a server that is not the first knows of a master from when it writes there") {
  EventQueue queue;
  Violations violations;
  LeaseChecker checker(queue, [](std::string_view) { return false; }, violations);
  KvOperation write;
  write.kind = KvOperation::Kind::kSet;
  write.key = "speedo:{job}:part/1/checkpoint:m";
  write.text = encode_answer({});
  write.master.emplace().term = 8;
  checker.done(write, 0);
  write.master->term = 7;
  checker.asked_by_master(7, write, 1);
  CHECK(violations.first() == "");
  write.master->term = 8;
  checker.done(write, 1);
  write.master->term = 7;
  checker.asked_by_master(7, write, 1);
  CHECK(violations.first().starts_with("a master that was replaced has changed"));
}

}  // namespace speedo::sim
