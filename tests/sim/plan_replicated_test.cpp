// Plans of replicated updates: what travels as factors, what each worker computes of it, and rounds
// that can be worked out by hand.

#include <vector>

#include "plan_support.hpp"
#include "sim/plan/plan_pieces.hpp"
#include "sim/plan/plan_run.hpp"

namespace speedo::sim {
namespace {

constexpr UpdateSpec kReplicated = {.kind = UpdateKind::kGradientOnly, .replicated = true};
constexpr std::uint64_t kOthers = 3000, kProduct = 2000 * 1000, kFactors = 10 * (2000 + 1000);

// A layer of weights alone, and one whose gradient is a product of ten rows, with some biases.
NetCosts net_with_product() {
  NetCosts net = {.parameters = 500000 + kProduct + kOthers, .batch = 10, .histories = 1};
  net.buckets = {{.parameters = 500000, .needed = 0.0, .final = 1.0},
                 {.parameters = kProduct + kOthers,
                  .needed = 0.5,
                  .final = 0.75,
                  .factors = {.rows = 10, .height = 2000, .width = 1000},
                  .product = 0.04}};
  net.update = 0.1;
  return net;
}

ClusterCosts cluster_with_product() {
  ClusterCosts cluster = ideal_cluster();
  cluster.net = net_with_product();
  return cluster;
}

PlanResult plan_rounds(const ClusterCosts& cluster, const UpdateSpec& update,
                       std::uint64_t workers, std::uint64_t rounds) {
  PlanOptions options;
  options.schedule.strategy.name = "sync";
  options.schedule.update = update;
  options.workers = workers;
  options.iterations = rounds;
  const auto result = plan(cluster, options);
  if (!result) FAIL(result.error().message);
  return *result;
}

TEST_CASE("Factors travel in place of products, each worker's to all") {
  const NetCosts net = net_with_product();
  const Pieces pieces(net, kReplicated, 4);
  CHECK(pieces.products_of(0) == 0);
  CHECK(pieces.products_of(1) == 4);
  CHECK(pieces.all_floats() == 500000 + kOthers + kFactors);
  CHECK(pieces.all_merged_floats() == 500000 + kOthers + 4 * kFactors);
  std::uint64_t floats = 0, merged = 0;
  for (std::size_t piece = 0; piece < pieces.count(); ++piece) {
    CHECK(pieces.merged_floats(piece) >= pieces.floats(piece));
    floats += pieces.floats(piece);
    merged += pieces.merged_floats(piece);
  }
  CHECK(floats == pieces.all_floats());
  CHECK(merged == pieces.all_merged_floats());
}

TEST_CASE("Products travel whole where that is less, or where factors are not wanted") {
  const NetCosts net = net_with_product();
  UpdateSpec whole = kReplicated;
  whole.factors = false;
  // So many workers' factors are more than a gradient and the mean's.
  const std::uint64_t too_many = 2 * kProduct / kFactors;
  const UpdateSpec merged = {.kind = UpdateKind::kGradientOnly};
  for (const auto& [update, workers] : {std::pair{whole, std::uint64_t{4}},
                                        std::pair{kReplicated, too_many},
                                        std::pair{merged, std::uint64_t{4}}}) {
    const Pieces pieces(net, update, workers);
    CHECK(pieces.products_of(1) == 0);
    CHECK(pieces.all_floats() == net.parameters);
    CHECK(pieces.all_merged_floats() == net.parameters);
  }
  CHECK(Pieces(net, kReplicated, too_many - 2).products_of(1) > 0);
}

TEST_CASE("A replica computes the rule, and every worker's product instead of its own") {
  const ClusterCosts cluster = cluster_with_product();
  const auto seconds = [&](bool has_weights) {
    EventQueue queue;
    CostModel costs(queue, cluster, {0}, 1);
    const Pieces pieces(cluster.net, kReplicated, 4);
    Contributions contributions;
    const auto run = std::make_shared<PlanRun>(
        RunParts{queue, costs, cluster.net, kReplicated, pieces, contributions},
        PlanRun::Order{.worker = WorkerId{1}, .run = RunId{1}, .has_weights = has_weights});
    run->on_opened = run->on_done = [] {};
    run->start();
    while (!queue.empty()) queue.step();
    return std::chrono::duration<double>(run->computing()).count();
  };
  CHECK(seconds(false) == Approx(1.0 - 0.1 - 0.04));
  CHECK(seconds(true) == Approx(1.0 - 0.04 + 4 * 0.04));
}

TEST_CASE("By a slow link a round of factors takes what their bytes take") {
  ClusterCosts cluster = cluster_with_product();
  for (MachineCosts& machine : cluster.machines) machine.bytes_per_second = 1e6;
  cluster.master.product_seconds = cluster.master.rule_seconds = 0.0;
  constexpr std::uint64_t kRounds = 60;
  const Pieces pieces(cluster.net, kReplicated, 4);
  const PlanResult factors = plan_rounds(cluster, kReplicated, 4, kRounds);
  // Four contributions in and out, a step in and out four times; weights and histories for
  // newcomers once a round at most. The last steps are not read.
  const auto contribution = static_cast<double>(pieces.all_floats());
  const auto step = static_cast<double>(pieces.all_merged_floats());
  const double bytes = 4.0 * (2.0 * 4.0 * contribution + 5.0 * step);
  const double whole_bytes = 4.0 * 2.0 * static_cast<double>(cluster.net.parameters);
  CHECK(factors.bytes_per_iteration > 0.97 * bytes);
  CHECK(factors.bytes_per_iteration < 1.03 * (bytes + whole_bytes));
  const PlanResult whole =
      plan_rounds(cluster, {.kind = UpdateKind::kGradientOnly}, 4, kRounds);
  CHECK(factors.images_per_second > 2.5 * whole.images_per_second);
}

TEST_CASE("Where shards make the steps, no link carries what all workers send") {
  constexpr std::uint64_t kWorkers = 4, kRounds = 40;
  ClusterCosts cluster = cluster_with_product();
  for (MachineCosts& machine : cluster.machines) machine.bytes_per_second = 4e6;
  cluster.master.product_seconds = cluster.master.rule_seconds = 0.0;
  // Of the bytes' way without the weights and histories for newcomers.
  cluster.net.histories = 0;
  const PlanResult alone = plan_rounds(cluster, kReplicated, kWorkers, kRounds);
  cluster.store.shards = kWorkers;
  cluster.store.machines = {"worker"};
  const PlanResult shards = plan_rounds(cluster, kReplicated, kWorkers, kRounds);
  CHECK(shards.iterations == kRounds);
  CHECK(shards.images_per_second > 1.5 * alone.images_per_second);
  // The master follows each step: it is read once more, by each machine but its server's own.
  const Pieces pieces(cluster.net, kReplicated, kWorkers);
  const double contribution = 4.0 * static_cast<double>(pieces.all_floats());
  const double step = 4.0 * static_cast<double>(pieces.all_merged_floats());
  const double others = 1.0 - 1.0 / static_cast<double>(kWorkers);
  CHECK(shards.bytes_per_iteration >
        0.9 * (kWorkers * others * (contribution + step) + step));
}

TEST_CASE("A master's replica follows behind its merges, and holds the next ones up") {
  ClusterCosts cluster = cluster_with_product();
  const auto round_seconds = [&] {
    return 1.0 / plan_rounds(cluster, kReplicated, 4, 20).iterations_per_second;
  };
  const double step = 1.0 - 0.04 + 4 * 0.04;
  CHECK(round_seconds() == Approx(step).epsilon(0.02));
  cluster.master.rule_seconds = 0.3;
  cluster.master.product_seconds = 0.15;
  CHECK(round_seconds() == Approx(step).epsilon(0.02));  // 0.3 + 4 * 0.15 are hidden
  cluster.master.product_seconds = 0.3;
  CHECK(round_seconds() == Approx(0.3 + 4 * 0.3).epsilon(0.1));
}

TEST_CASE("Products that cannot be are refused") {
  const auto message = [](const auto& change) {
    ClusterCosts cluster = cluster_with_product();
    change(cluster);
    const auto checked = check(cluster);
    return checked ? std::string() : checked.error().message;
  };
  CHECK(message([](ClusterCosts&) {}).empty());
  CHECK(message([](ClusterCosts& cluster) { cluster.net.buckets[1].factors.width = 1002; })
            .find("has a product of 2000 x 1002") != std::string::npos);
  CHECK(message([](ClusterCosts& cluster) { cluster.net.buckets[1].factors.height = 0; })
            .find("has a product of 0 x 1000") != std::string::npos);
  CHECK(message([](ClusterCosts& cluster) { cluster.net.buckets[1].product = 0.9; })
            .find("leave time for the rest") != std::string::npos);
}

}  // namespace
}  // namespace speedo::sim
