// The small parts of the master's session, each alone.

#include "train/session_parts.hpp"

#include <chrono>

#include <speedo/base/limits.hpp>

#include "support/catch.hpp"
#include "train/session/awake_clock.hpp"
#include "train/session/divergence.hpp"
#include "train/session/merge_tally.hpp"
#include "train/session/tests_and_snapshots.hpp"

namespace speedo {

TEST_CASE("time does not pass while the process sleeps, and never goes back") {
  AwakeClock clock;
  const Instant start = std::chrono::seconds(1000);
  CHECK(!clock.tick(start));
  CHECK(clock.now() == Instant{0});
  CHECK(!clock.tick(start + kSleptThrough));
  CHECK(clock.now() == kSleptThrough);
  CHECK(!clock.tick(start));
  CHECK(clock.now() == kSleptThrough);
  const auto slept = clock.tick(start + kSleptThrough + std::chrono::seconds(60));
  CHECK(slept == Instant(std::chrono::seconds(60)));
  CHECK(clock.now() == kSleptThrough);
}

TEST_CASE("runs in a row without a finite loss are a divergence, until one is merged") {
  Divergence divergence(kNonFiniteRunsMax);
  for (int i = 0; i + 1 < kNonFiniteRunsMax; ++i) divergence.not_finite();
  CHECK(!divergence.is_certain());
  divergence.merged();
  CHECK(divergence.in_row() == 0);
  for (int i = 0; i < kNonFiniteRunsMax; ++i) divergence.not_finite();
  CHECK(divergence.is_certain());
}

TEST_CASE("contributions that one loss of the store took count once") {
  Divergence divergence(kNonFiniteRunsMax);
  const std::vector<RunId> lost = {{3}, {4}, {5}};
  divergence.rejected(lost, {8});
  CHECK(divergence.in_row() == 1);
  divergence.rejected(std::vector<RunId>{{7}}, {9});  // was under way then
  CHECK(divergence.in_row() == 1);
  divergence.rejected(std::vector<RunId>{{8}}, {9});
  CHECK(divergence.in_row() == 2);
}

TEST_CASE("as many runs that are not finite as were allowed are a divergence; lost ones are not") {
  Divergence divergence(2);
  divergence.not_finite();
  CHECK(!divergence.is_certain());
  const std::vector<RunId> lost = {{3}};
  divergence.rejected(lost, {8});
  CHECK(divergence.in_row() == 2);
  CHECK(!divergence.is_certain());
  divergence.not_finite();
  CHECK(divergence.is_certain());
  divergence.merged();
  CHECK(!divergence.is_certain());
}

TEST_CASE("a merge is one iteration, and staleness counts the versions since the base") {
  MergeTally tally(5, {3});
  Contribution fresh = contribution_of(0, 1);
  fresh.base = {3};
  fresh.loss = 1.0F;
  Contribution stale = contribution_of(1, 2);
  stale.base = {1};
  stale.loss = 2.0F;
  stale.samples = 30;
  tally.merged(std::vector<Contribution>{fresh, stale}, {4});
  CHECK(tally.iteration() == 6);
  CHECK(tally.first_iteration() == 5);
  CHECK(tally.newest() == Version{4});
  CHECK(tally.counts().merges == 1);
  CHECK(tally.counts().contributions == 2);
  CHECK(tally.counts().samples == 40);
  CHECK(tally.counts().staleness_sum == 2.0);
  MasterProgress progress;
  tally.show(progress);
  CHECK(progress.last_loss == 1.75F);  // the mean over samples
}

TEST_CASE("weights in a mean follow the shards, weights by staleness the versions") {
  Schedule schedule;
  Contribution one = contribution_of(0, 1);
  Contribution three = contribution_of(1, 2);
  three.data.count = 3;
  const MergeOrder mean{{one, three}, true};
  CHECK(weighed(mean, schedule, {0})[0].weight == 0.5F);
  CHECK(weighed(mean, schedule, {0})[1].weight == 1.5F);
  CHECK(weighed({{three}, false}, schedule, {0})[0].weight == 1.0F);
  // What the strategy or the versions make of a weight is not in the share.
  three.weight = 0.25F;
  CHECK(weighed({{one, three}, true}, schedule, {0})[1].share == 1.5F);
  CHECK(weighed({{three}, false}, schedule, {0})[0].share == 1.0F);
  three.weight = 1.0F;
  schedule.weight_by_staleness = true;
  CHECK(weighed({{one}, false}, schedule, {3})[0].weight == 0.25F);
  CHECK(staleness_of(one, {0}) == 0);
}

TEST_CASE("a snapshot that was wished for waits for a finite loss") {
  TestsAndSnapshots jobs(0);
  SessionCommands out;
  jobs.wish_snapshot(true);
  jobs.start_due({4, false, std::nullopt}, out);
  CHECK(take_text(out).empty());
  jobs.start_due({5, true, std::nullopt}, out);
  CHECK(take_text(out) == "snapshot 5");
  jobs.start_due({6, true, std::nullopt}, out);
  CHECK(take_text(out).empty());
}

TEST_CASE("one that falls due while another is under way holds the weights") {
  TestsAndSnapshots jobs(4);
  SessionCommands out;
  jobs.reach(2, 2);
  jobs.start_due({2, true, std::nullopt}, out);
  CHECK(take_text(out) == "test 2");
  CHECK(!jobs.holds_weights());
  jobs.reach(3, 2);
  jobs.reach(4, 2);
  jobs.start_due({4, true, std::nullopt}, out);
  CHECK(take_text(out) == "snapshot 4");
  CHECK(jobs.holds_weights());
  jobs.tested({2, 0.5F, 1.0F});
  jobs.start_due({4, true, std::nullopt}, out);
  CHECK(take_text(out) == "test 4");
  CHECK(!jobs.holds_weights());
}

TEST_CASE("no snapshot is written of an iteration whose test loss is not finite") {
  TestsAndSnapshots jobs(2);
  SessionCommands out;
  jobs.reach(2, 2);
  jobs.start_due({2, true, 2}, out);
  CHECK(take_text(out) == "test 2");  // the snapshot waits for it
  jobs.tested({2, 0.5F, 1.0F, true});
  jobs.start_due({2, true, 2}, out);
  CHECK(take_notes(out).find("no snapshot of iteration 2") == 0);
  CHECK(!jobs.snapshot_is_open());
}

}  // namespace speedo
