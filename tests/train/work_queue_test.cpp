#include "train/session/work_queue.hpp"

#include "support/catch.hpp"
#include "train/session_parts.hpp"

namespace speedo {

namespace {

using Head = WorkQueue::Head;
using Workers = std::vector<WorkerId>;

}  // namespace

TEST_CASE("orders are carried out first in, first out, Trains up to the next merge together") {
  WorkQueue work;
  work.report(contribution_of(0, 1));
  work.train({1});
  work.train({2});
  work.merge({0}, 0.5F);
  work.train({0});
  REQUIRE(work.head() == Head::kTrain);
  CHECK(work.take_trains() == Workers{{1}, {2}});
  REQUIRE(work.head() == Head::kMerge);
  const MergeOrder merge = work.start_merge();
  CHECK(!merge.mean);
  REQUIRE(merge.contributions.size() == 1);
  CHECK(merge.contributions[0].weight == 0.5F);
  CHECK(work.is_merging());
  CHECK(work.end_merge(work.in_flight_id()).contributions[0].run == RunId{1});
  CHECK(!work.is_merging());
  CHECK(work.take_trains() == Workers{{0}});
  CHECK(work.head() == Head::kNothing);
}

TEST_CASE("a mean takes the contributions in the order of their data, and merges are numbered") {
  WorkQueue work;
  for (std::uint64_t worker = 0; worker < 4; ++worker) {
    Contribution made = contribution_of(worker, worker);
    made.data.first = 9 - worker;
    work.report(made);
  }
  CHECK(work.discard({1}).run == RunId{1});
  work.average(Workers{{0}, {3}});
  work.merge({2}, 1.0F);
  const MergeOrder mean = work.start_merge();
  CHECK(mean.mean);
  REQUIRE(mean.contributions.size() == 2);
  CHECK(mean.contributions[0].worker == WorkerId{3});
  const MergeId first = work.in_flight_id();
  work.end_merge(first);
  work.start_merge();
  CHECK(work.in_flight_id().value == first.value + 1);
}

TEST_CASE("workers that are held are trained before what was ordered meanwhile") {
  WorkQueue work;
  work.hold({1});
  work.hold({2});
  CHECK(work.is_empty());
  CHECK(!work.is_clear());
  CHECK(work.has_trains());
  work.train({3});
  work.go_on();
  CHECK(work.take_trains() == Workers{{1}, {2}, {3}});
  CHECK(work.is_clear());
}

TEST_CASE("a stage that ends drops Trains, merges what is ordered, gives up what is undecided") {
  WorkQueue work;
  for (std::uint64_t worker = 0; worker < 3; ++worker) {
    work.report(contribution_of(worker, worker));
  }
  work.train({7});
  work.merge({1}, 1.0F);
  work.hold({8});
  work.drop_trains();
  CHECK(!work.has_trains());
  CHECK(work.head() == Head::kMerge);
  const auto undecided = work.take_undecided();
  REQUIRE(undecided.size() == 2);
  CHECK(undecided[0].worker == WorkerId{0});
  CHECK(undecided[1].worker == WorkerId{2});
  CHECK(work.take_undecided().empty());
  CHECK(!work.is_empty());
}

TEST_CASE("the end of training leaves only the merge in flight") {
  WorkQueue work;
  work.report(contribution_of(0, 1));
  work.merge({0}, 1.0F);
  work.start_merge();
  work.report(contribution_of(1, 2));
  work.train({1});
  work.hold({2});
  work.clear();
  CHECK(work.is_clear());
  CHECK(work.is_merging());
}

TEST_CASE("records of a worker that is gone are kept as long as a contribution of it may be read") {
  WorkQueue work;
  work.report(contribution_of(0, 1));
  work.worker_is_gone({0});
  work.worker_is_gone({5});
  CHECK(work.take_unwanted() == Workers{{5}});
  CHECK(work.take_unwanted().empty());  // undecided
  work.merge({0}, 1.0F);
  CHECK(work.take_unwanted().empty());  // queued
  work.start_merge();
  CHECK(work.take_unwanted().empty());  // in flight
  work.end_merge(work.in_flight_id());
  CHECK(work.take_unwanted() == Workers{{0}});
  CHECK(work.take_unwanted().empty());
}

}  // namespace speedo
