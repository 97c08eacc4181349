// What of the exchange is hidden behind computing, in cases that can be worked out by hand: a
// mini-batch takes a second, a chunk a tenth of one, each way; nothing else takes time.

#include <vector>

#include <speedo/base/limits.hpp>
#include <speedo/store/record_store.hpp>

#include "plan_support.hpp"
#include "sim/plan/plan_merger.hpp"
#include "sim/plan/plan_run.hpp"

namespace speedo::sim {
namespace {

constexpr double kChunkSeconds = 0.1;
constexpr double kChunkRate = static_cast<double>(kChunkBytes) / kChunkSeconds;

ClusterCosts cluster_of(const std::vector<BucketCosts>& buckets) {
  ClusterCosts cluster = ideal_cluster();
  cluster.net.parameters = 0;
  for (const BucketCosts& bucket : buckets) cluster.net.parameters += bucket.parameters;
  cluster.net.buckets = buckets;
  return cluster;
}

BucketCosts bucket_of(std::uint64_t chunks, double needed, double final) {
  return {.parameters = chunks * kChunkElements, .needed = needed, .final = final};
}

// Layers of seven chunks and of one, half of the time in either.
const std::vector<BucketCosts> kLargeLast = {bucket_of(1, 0.0, 1.0), bucket_of(7, 0.25, 0.5)};
const std::vector<BucketCosts> kLargeFirst = {bucket_of(7, 0.0, 1.0), bucket_of(1, 0.25, 0.5)};
const std::vector<BucketCosts> kOneBucket = {bucket_of(8, 0.0, 1.0)};

// One run with nobody else there, in seconds; and how much of it was not computing.
struct RunTimes {
  double all = 0.0, exchanging = 0.0;
};

RunTimes times_of(const ClusterCosts& cluster, const UpdateSpec& update = {},
                  bool has_weights = false) {
  REQUIRE(check(cluster));
  EventQueue queue;
  CostModel costs(queue, cluster, {0}, 1);
  const Pieces pieces(cluster.net, update, 1);
  Contributions contributions;
  const auto run = std::make_shared<PlanRun>(
      RunParts{queue, costs, cluster.net, update, pieces, contributions},
      PlanRun::Order{.place = 0,
                     .worker = WorkerId{1},
                     .run = RunId{1},
                     .steps = update.steps_per_run,
                     .has_weights = has_weights});
  int opened = 0;
  Instant end{0};
  run->on_opened = [&] { opened += 1; };
  run->on_done = [&] { end = queue.now(); };
  run->start();
  while (!queue.empty()) queue.step();
  CHECK(opened == 1);
  const auto seconds = [](Instant time) { return std::chrono::duration<double>(time).count(); };
  CHECK(seconds(end) == Approx(seconds(run->computing() + run->exchanging())));
  return {seconds(end), seconds(run->exchanging())};
}

double write_end(const std::vector<BucketCosts>& buckets, const UpdateSpec& update = {},
                 bool clips = false) {
  ClusterCosts cluster = cluster_of(buckets);
  cluster.store.write_bytes_per_second = kChunkRate;
  cluster.net.clips = clips;
  return times_of(cluster, update).all;
}

double read_end(const std::vector<BucketCosts>& buckets, const UpdateSpec& update = {}) {
  ClusterCosts cluster = cluster_of(buckets);
  cluster.store.read_bytes_per_second = kChunkRate;
  return times_of(cluster, update).all;
}

TEST_CASE("Writing is hidden behind the gradients that are still computed") {
  // Seven chunks from 0.5 on, the last one behind them.
  CHECK(write_end(kLargeLast) == Approx(1.3));
  // One chunk is written early, seven when all is computed.
  CHECK(write_end(kLargeFirst) == Approx(1.7));
  CHECK(write_end(kOneBucket) == Approx(1.8));
}

TEST_CASE("Only the last mini-batch of a run has something to hide writing behind") {
  CHECK(write_end(kLargeLast, {.steps_per_run = 3}) == Approx(3.3));
  CHECK(write_end(kOneBucket, {.steps_per_run = 3}) == Approx(3.8));
}

TEST_CASE("A rule that clips by the norm holds everything back, unless it is the master's") {
  CHECK(write_end(kLargeLast, {}, true) == Approx(1.8));
  CHECK(write_end(kLargeFirst, {}, true) == Approx(1.8));
  CHECK(write_end(kLargeLast, {.kind = UpdateKind::kGradientOnly}, true) == Approx(1.3));
}

TEST_CASE("A layer waits for its own weights only") {
  // The first chunk is there at 0.1, the others at 0.8; they are needed at 0.35.
  CHECK(read_end(kLargeLast) == Approx(0.8 + 0.75));
  // Seven are there at 0.7, the last one at 0.8, long before it is needed.
  CHECK(read_end(kLargeFirst) == Approx(0.7 + 1.0));
  CHECK(read_end(kOneBucket) == Approx(1.8));
}

TEST_CASE("Waiting for weights counts as exchanging") {
  ClusterCosts cluster = cluster_of(kLargeLast);
  cluster.store.read_bytes_per_second = kChunkRate;
  CHECK(times_of(cluster).exchanging == Approx(0.55));
}

TEST_CASE("Averaged histories travel behind the weights, and are needed before anything") {
  ClusterCosts cluster = cluster_of(kLargeLast);
  cluster.store.read_bytes_per_second = kChunkRate;
  UpdateSpec update;
  update.updater = UpdaterState::kAverage;
  CHECK(times_of(cluster, update).all == Approx(1.6 + 1.0));
}

TEST_CASE("An elastic worker keeps its weights, and reads the centre behind its gradients") {
  ClusterCosts cluster = cluster_of(kLargeLast);
  cluster.store.read_bytes_per_second = kChunkRate;
  const UpdateSpec update = {.kind = UpdateKind::kElastic};
  CHECK(times_of(cluster, update, true).all == Approx(1.3));
  // At first it begins at the centre, all of it.
  CHECK(times_of(cluster, update, false).all == Approx(0.8 + 1.3));
  // SpeeDO's form reads what the master made of its weights.
  CHECK(times_of(cluster, {.kind = UpdateKind::kElasticMaster}, true).all == Approx(1.8));
}

TEST_CASE("A gradient's worker does not apply the rule") {
  ClusterCosts cluster = cluster_of(kOneBucket);
  cluster.net.update = 0.2;
  CHECK(times_of(cluster).all == Approx(1.0));
  CHECK(times_of(cluster, {.kind = UpdateKind::kGradientOnly}).all == Approx(0.8));
}

// A merge of one contribution that is there from the start, ordered after two seconds: how long
// its order takes.
struct MergeCase {
  std::uint64_t chunks = 8;
  UpdateSpec update = {};
  bool expects = true;       // the same merge as is ordered
  bool merges_ahead = true;  // the cluster does
  bool clips = false;
  bool reads = true;         // reading is what takes time, else writing
};

double merge_seconds(const MergeCase& test) {
  ClusterCosts cluster = cluster_of({bucket_of(test.chunks, 0.0, 1.0)});
  (test.reads ? cluster.store.read_bytes_per_second : cluster.store.write_bytes_per_second) =
      kChunkRate;
  cluster.master.merges_ahead = test.merges_ahead;
  cluster.net.clips = test.clips;
  cluster.master.rule_seconds = 1e-9;
  EventQueue queue;
  CostModel costs(queue, cluster, {0}, 1);
  const Pieces pieces(cluster.net, test.update, 1);
  Contributions contributions;
  PlanMerger merger({queue, costs, cluster.net, test.update, pieces, contributions});
  contributions.begin(WorkerId{1}, RunId{1}, pieces.count());
  for (std::size_t piece = 0; piece < pieces.count(); ++piece) {
    contributions.put(WorkerId{1}, RunId{1}, piece);
  }
  MergeJob job{};
  job.contributions.push_back({WorkerId{1}, RunId{test.expects ? 1U : 2U}, 1.0F});
  merger.expect(job);
  job.contributions.front().run = RunId{1};
  Instant end{0};
  queue.at(std::chrono::seconds(2), [&] { merger.merge(job, [&] { end = queue.now(); }); });
  while (!queue.empty() && end == Instant{0}) queue.step();
  return std::chrono::duration<double>(end).count() - 2.0;
}

TEST_CASE("A merge that was begun before its order is only finished then") {
  CHECK(merge_seconds({}) == Approx(0.0).margin(1e-6));
  CHECK(merge_seconds({.reads = false}) == Approx(0.0).margin(1e-6));
  CHECK(merge_seconds({.merges_ahead = false}) == Approx(0.8));
}

TEST_CASE("Another merge than was expected is made from the start") {
  CHECK(merge_seconds({.expects = false}) == Approx(0.8));
}

TEST_CASE("Records of less than 4 MiB are not merged ahead of order") {
  CHECK(merge_seconds({.chunks = 3}) == Approx(0.3));
  CHECK(merge_seconds({.chunks = 4}) == Approx(0.0).margin(1e-6));
}

TEST_CASE("A master's rule that clips adds ahead, but writes nothing before the order") {
  const UpdateSpec gradients = {.kind = UpdateKind::kGradientOnly};
  CHECK(merge_seconds({.update = gradients, .clips = true}) == Approx(0.0).margin(1e-6));
  CHECK(merge_seconds({.update = gradients, .clips = true, .reads = false}) ==
        Approx(0.8).margin(1e-6));
  CHECK(merge_seconds({.update = gradients, .reads = false}) == Approx(0.0).margin(1e-6));
}

TEST_CASE("Rounds are merged ahead, asynchronous contributions are not") {
  ClusterCosts ahead = cluster_of(kLargeLast);
  ahead.store.read_bytes_per_second = ahead.store.write_bytes_per_second = 4.0 * kChunkRate;
  ClusterCosts ordered = ahead;
  ordered.master.merges_ahead = false;
  CHECK(plan_of(ahead, "sync", 2).speed_up > 1.05 * plan_of(ordered, "sync", 2).speed_up);
  CHECK(plan_of(ahead, "async", 2).seconds == plan_of(ordered, "async", 2).seconds);
}

TEST_CASE("On one machine what is hidden behind computing is paid for by computing") {
  ClusterCosts cluster = cluster_of(kLargeLast);
  cluster.machines.erase(cluster.machines.begin());
  cluster.machines[0].cores = 2.0;
  // Of a processor for each record: 0.1 s of its client, 0.05 of the store.
  const double record_bytes = 4.0 * static_cast<double>(cluster.net.parameters);
  cluster.worker.client_bytes_per_second = record_bytes / 0.1;
  cluster.store.read_bytes_per_second = cluster.store.write_bytes_per_second = record_bytes / 0.1;
  cluster.store.busy_read_bytes_per_second = record_bytes / 0.05;
  cluster.store.busy_write_bytes_per_second = record_bytes / 0.05;
  const PlanResult round = plan_of(cluster, "sync", 2);
  // Two steps, and seven records of two workers and the merge, on two cores.
  const double least = (2.0 + 7.0 * 0.15) / 2.0;
  CHECK(1.0 / round.iterations_per_second > least);
  // Apart they would take a step and four records one after the other, with the others' beside.
  CHECK(1.0 / round.iterations_per_second < 1.15 * least);
}

}  // namespace
}  // namespace speedo::sim
