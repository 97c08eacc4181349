// By which way is exchanged: one store or several, shards, shared memory, codecs; in cases that can
// be worked out by hand.

#include <string>
#include <vector>

#include <speedo/store/record_store.hpp>

#include "plan_support.hpp"
#include "sim/plan/cost_exchange.hpp"

namespace speedo::sim {
namespace {

constexpr double kRate = 125e6;  // of a link, bytes a second
constexpr std::uint64_t kChunks = 48;
constexpr double kWeightBytes = static_cast<double>(kChunks * kChunkElements) * 4.0;

// `workers` machines that compute in no time, with links of kRate and nothing else that takes time;
// the master's is one more, with nothing else on it.
ClusterCosts linked_cluster(std::uint64_t workers) {
  ClusterCosts cluster = ideal_cluster();
  cluster.net.parameters = kChunks * kChunkElements;
  for (MachineCosts& machine : cluster.machines) {
    machine.step_seconds = {1e-6};
    machine.bytes_per_second = kRate;
  }
  cluster.machines[0].count = workers;
  return cluster;
}

double round_seconds(const ClusterCosts& cluster, std::uint64_t workers) {
  const PlanResult result = plan_of(cluster, "sync", workers, 1, 20);
  return result.seconds / static_cast<double>(result.iterations);
}

PlanResult plan_of_gradients(const ClusterCosts& cluster, std::uint64_t workers) {
  PlanOptions options;
  options.schedule = *make_schedule(*parse_plan_schedule("sync"), workers, std::nullopt,
                                    Contributes::kGradients);
  options.workers = workers;
  auto result = plan(cluster, options);
  if (!result) FAIL(result.error().message);
  return *result;
}

// The plan's rounds are seen in pieces, of which the first moves alone: allows for some.
constexpr double kPieces = 0.08;

TEST_CASE("A round by one store takes N times the weights each way on its link") {
  for (const std::uint64_t workers : {2U, 4U, 8U}) {
    CAPTURE(workers);
    const double wanted = 2.0 * static_cast<double>(workers) * kWeightBytes / kRate;
    CHECK(round_seconds(linked_cluster(workers), workers) == Approx(wanted).epsilon(kPieces));
  }
}

TEST_CASE("A round by shards on the workers' machines takes 2 W (N - 1) / N on each link") {
  for (const std::uint64_t workers : {2U, 4U, 8U}) {
    CAPTURE(workers);
    ClusterCosts cluster = linked_cluster(workers);
    cluster.store.shards = workers;
    cluster.store.machines = {"worker"};
    cluster.store.copies = false;
    const auto count = static_cast<double>(workers);
    const double wanted = 2.0 * kWeightBytes * (count - 1.0) / count / kRate;
    CHECK(round_seconds(cluster, workers) == Approx(wanted).epsilon(kPieces));
    // A copy of each part goes to the next machine once: behind the merge, or while others send.
    cluster.store.copies = true;
    const double copied = round_seconds(cluster, workers);
    CHECK(copied > wanted);
    CHECK(copied < wanted + 1.1 * kWeightBytes / count / kRate + kPieces * wanted);
  }
}

TEST_CASE("A link is busy while anything goes over it, however many ways") {
  // In rounds one way after the other.
  const PlanResult rounds = plan_of(linked_cluster(4), "sync", 4, 1, 20);
  CHECK(rounds.link_host == "head");
  CHECK(rounds.link_busy > 0.9);
  CHECK(rounds.link_busy < 1.001);
  const PlanResult both_ways = plan_of(linked_cluster(4), "easgd", 4, 1, 80);
  CHECK(both_ways.bytes_per_second > 1.5 * kRate);
  CHECK(both_ways.link_busy > 0.9);
  CHECK(both_ways.link_busy < 1.001);
}

TEST_CASE("Copies of shards are those of weights and of checkpoints") {
  ClusterCosts cluster = linked_cluster(2);
  cluster.store.shards = 2;
  const double copied = plan_of_gradients(cluster, 2).bytes_per_iteration;
  cluster.store.copies = false;
  // Of weights, and of weights and histories.
  CHECK(copied - plan_of_gradients(cluster, 2).bytes_per_iteration ==
        Approx(3.0 * kWeightBytes).epsilon(0.02));
}

TEST_CASE("Servers without mergers divide what workers move, not what the master does") {
  ClusterCosts cluster = linked_cluster(4);
  const double one = round_seconds(cluster, 4);
  cluster.store.servers = 4;
  cluster.store.machines = {"worker"};
  const double several = round_seconds(cluster, 4);
  // The master reads four contributions by its link while they are written, and writes one record;
  // each worker then reads three quarters of one.
  CHECK(several < 0.85 * one);
  CHECK(several > (4.0 + 1.0) * kWeightBytes / kRate);
}

TEST_CASE("A codec makes the way up shorter, and nothing else") {
  for (const double ratio : {2.0, 4.0}) {
    for (const std::uint64_t shards : {0U, 4U}) {
      CAPTURE(ratio, shards);
      ClusterCosts cluster = linked_cluster(4);
      cluster.store.shards = shards;
      cluster.store.machines = {"worker"};
      if (shards == 0) cluster.store.machines.clear();
      cluster.store.copies = false;
      const double plain = round_seconds(cluster, 4);
      cluster.codecs = {{.name = "bf16", .ratio = ratio}};
      cluster.worker.codec = "bf16";
      CHECK(round_seconds(cluster, 4) ==
            Approx(plain / 2.0 + plain / 2.0 / ratio).epsilon(kPieces));
    }
  }
}

TEST_CASE("A codec's own time is its worker's and the merger's") {
  ClusterCosts cluster = linked_cluster(1);
  for (MachineCosts& machine : cluster.machines) machine.bytes_per_second = 0.0;
  cluster.codecs = {{.name = "int8", .ratio = 4.0}};
  cluster.worker.codec = "int8";
  CHECK(round_seconds(cluster, 1) < 0.01);
  SECTION("to encode") { cluster.codecs[0].encode_bytes_per_second = kWeightBytes; }
  SECTION("to decode") { cluster.codecs[0].decode_bytes_per_second = kWeightBytes; }
  CHECK(round_seconds(cluster, 1) == Approx(1.0).epsilon(0.02));
}

TEST_CASE("Workers beside the master that share its memory do not ask the store") {
  ClusterCosts cluster = linked_cluster(1);
  cluster.machines.erase(cluster.machines.begin());
  cluster.machines[0].cores = 8.0;
  cluster.machines[0].step_seconds = {0.01};
  cluster.store.record_seconds = 0.5;
  cluster.store.read_bytes_per_second = cluster.store.write_bytes_per_second = kRate;
  cluster.worker.shares_memory = true;
  const PlanResult shared = plan_of(cluster, "sync", 4);
  CHECK(shared.seconds == Approx(0.01 * 200.0).epsilon(0.02));
  // Only now and then, behind everything, the weights go there.
  CHECK(shared.bytes_per_second < kWeightBytes);
  SECTION("reading the weights takes a core") {
    cluster.worker.memory_bytes_per_second = kWeightBytes / 0.01;
    CHECK(plan_of(cluster, "sync", 4).seconds == Approx(0.02 * 200.0).epsilon(0.03));
  }
  SECTION("so does merging") {
    cluster.master.merge_bytes_per_second = kWeightBytes / 0.01;
    CHECK(plan_of(cluster, "sync", 4).seconds == Approx(0.05 * 200.0).epsilon(0.03));
  }
  SECTION("with the weights the histories go to the store, where they are the master's") {
    const PlanResult gradients = plan_of_gradients(cluster, 4);
    CHECK(gradients.seconds == Approx(0.01 * 200.0).epsilon(0.03));
    CHECK(gradients.bytes_per_second > shared.bytes_per_second);
    CHECK(gradients.bytes_per_second < 3.0 * kWeightBytes);
    CHECK(gradients.master_busy < 0.05);
  }
  SECTION("unless it is not shared") {
    cluster.worker.shares_memory = false;
    CHECK(plan_of(cluster, "sync", 4, 1, 5).seconds > 5.0);
  }
  SECTION("shards have no memory to share") {
    cluster.store.shards = 2;
    CHECK(plan_of(cluster, "sync", 4, 1, 5).seconds > 5.0);
  }
}

TEST_CASE("Beside workers of other machines, those of the master's move nothing themselves") {
  ClusterCosts cluster = linked_cluster(3);
  cluster.machines[1].workers_max = 1;
  const double all = round_seconds(cluster, 4);
  cluster.worker.shares_memory = true;
  // Three workers' bytes pass the head's link in both cases.
  CHECK(round_seconds(cluster, 4) == Approx(all).epsilon(kPieces));
  const double bytes = plan_of(cluster, "sync", 4).bytes_per_iteration;
  // Three contributions written and read, and weights written once and read three times.
  CHECK(bytes == Approx(10.0 * kWeightBytes).epsilon(0.02));
}

TEST_CASE("Every schedule that shards can serve is planned with them") {
  ClusterCosts cluster = linked_cluster(3);
  cluster.machines[0].step_seconds = {0.1};
  cluster.store.shards = 3;
  for (const char* schedule : {"sync", "async", "ssp", "partial-sync", "weedout", "grouping",
                               "easgd", "easgd:10"}) {
    CAPTURE(schedule);
    CHECK(plan_of(cluster, schedule, 3, 1, 30).iterations == 30);
  }
  PlanOptions options;
  options.schedule.update.updater = UpdaterState::kAverage;
  const auto refused = plan(cluster, options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUsage);
}

TEST_CASE("A short net leaves shards without a part") {
  ClusterCosts cluster = linked_cluster(4);
  cluster.net.parameters = kChunkElements + 1;
  cluster.store.shards = 4;
  CHECK(server_shares(cluster)[2] == 0.0);
  CHECK(plan_of(cluster, "sync", 4, 1, 10).iterations == 10);
}

TEST_CASE("Servers are placed one on each machine that is named, then a second one on each") {
  ClusterCosts cluster = linked_cluster(2);
  CHECK(server_hosts(cluster) == std::vector<std::size_t>{2});
  cluster.store.machines = {"worker"};
  CHECK(server_hosts(cluster) == std::vector<std::size_t>{2});
  cluster.store.machines.clear();
  cluster.store.servers = 4;
  CHECK(server_hosts(cluster) == std::vector<std::size_t>{0, 1, 2, 0});
  cluster.store.shards = 3;
  cluster.store.servers = 1;
  cluster.store.machines = {"worker"};
  CHECK(server_hosts(cluster) == std::vector<std::size_t>{0, 1, 0});
}

TEST_CASE("A plan says which way it assumed") {
  ClusterCosts cluster = linked_cluster(2);
  cluster.worker.shares_memory = true;
  cluster.worker.codec = "bf16";
  CHECK(describe_exchange(cluster) == "one store on head, the master merges; workers on head "
                                      "exchange in memory; codec bf16, 2 times fewer bytes to the "
                                      "store");
  cluster.store.shards = 2;
  cluster.worker.codec = "none";
  CHECK(describe_exchange(cluster) ==
        "2 shards on worker-0, worker-1, each with a copy on the next; codec none");
}

TEST_CASE("Codecs that are not described have their usual ratio") {
  const ClusterCosts cluster = linked_cluster(1);
  const auto ratio = [&](const char* name) { return codec_of(cluster, name)->ratio; };
  CHECK(ratio("none") == 1.0);
  CHECK(ratio("fp16") == 2.0);
  CHECK(ratio("int8") == Approx(4.0 * 256.0 / 260.0));
  CHECK(ratio("onebit") == Approx(4.0 * 512.0 / 72.0));
  CHECK(ratio("topk:1") > 60.0);
  ClusterCosts described = cluster;
  CHECK(ratio("threshold") > 20.0);
  described.codecs = {{.name = "topk:1", .ratio = 50.0}};
  CHECK(codec_of(described, "topk:1")->ratio == 50.0);
  CHECK(codec_of(cluster, "threshold:0.001").error().code == ErrorCode::kUsage);
  CHECK(codec_of(cluster, "zip").error().code == ErrorCode::kUsage);
}

TEST_CASE("An exchange that cannot be is refused") {
  ClusterCosts cluster = linked_cluster(2);
  REQUIRE(check(cluster));
  std::string wanted;
  SECTION("too many shards") {
    cluster.store.shards = 1000;
    wanted = "store: shards is 1000";
  }
  SECTION("no server") {
    cluster.store.servers = 0;
    wanted = "store: servers is 0";
  }
  SECTION("another place") {
    cluster.store.machines = {"moon"};
    wanted = "no machine is named 'moon'";
  }
  SECTION("no codec") {
    cluster.worker.codec = "zip";
    wanted = "codec 'zip'";
  }
  SECTION("a codec of which nothing is known") {
    cluster.worker.codec = "threshold:0.5";
    wanted = "[[codec]]";
  }
  SECTION("a ratio") {
    cluster.codecs = {{.name = "int8", .ratio = -1.0}};
    wanted = "codec 'int8': ratio is -1";
  }
  SECTION("a batch") {
    cluster.net.batches = {{.batch = 8, .times = 0.0}};
    wanted = "net: batches";
  }
  SECTION("the batch itself, at another time") {
    cluster.net.batches = {{.batch = cluster.net.batch, .times = 0.1}};
    wanted = "images are the batch itself, and take 1 times as long, not 0.1";
  }
  SECTION("a batch that is named twice") {
    cluster.net.batches = {{.batch = 20, .times = 1.5}, {.batch = 20, .times = 0.2}};
    wanted = "net: batches: 20 images are named twice";
  }
  SECTION("a batch that the rule alone takes longer than") {
    cluster.net.update = 0.3;
    cluster.net.batches = {{.batch = 5, .times = 0.3}};
    wanted = "leave no time beside update";
  }
  const auto checked = check(cluster);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().message.find(wanted) != std::string::npos);
}

}  // namespace
}  // namespace speedo::sim
