// What the durations are made of: shared resources, machines, a net's traffic.

#include <cmath>
#include <vector>

#include "plan_support.hpp"
#include "sim/cost_model.hpp"
#include "sim/plan_train.hpp"

namespace speedo::sim {
namespace {

double seconds(Instant time) { return std::chrono::duration<double>(time).count(); }

void run(Flows& flows) {
  while (!flows.idle()) flows.advance(flows.next());
}

void check_ends(const std::vector<double>& ends, const std::vector<double>& wanted) {
  REQUIRE(ends.size() == wanted.size());
  for (std::size_t i = 0; i < ends.size(); ++i) CHECK(ends[i] == Approx(wanted[i]));
}

TEST_CASE("A server gives n flows 1/n each") {
  Flows flows;
  const auto server = flows.add_server();
  std::vector<double> ends;
  const auto note = [&] { ends.push_back(seconds(flows.now())); };
  flows.start(Instant{0}, 0.0, {{server, 1.0}}, note);
  flows.start(Instant{0}, 0.0, {{server, 2.0}}, note);
  run(flows);
  // At first each has half of it.
  check_ends(ends, {2.0, 3.0});
  CHECK(flows.busy_seconds(server) == Approx(3.0));
}

TEST_CASE("A flow goes at the pace of what it has to share most, and not faster than alone") {
  Flows flows;
  const auto narrow = flows.add_server();
  const auto wide = flows.add_server();
  std::vector<double> ends;
  const auto note = [&] { ends.push_back(seconds(flows.now())); };
  flows.start(Instant{0}, 0.5, {{narrow, 1.0}, {wide, 0.1}}, note);
  flows.start(Instant{0}, 4.0, {{wide, 0.1}}, note);
  run(flows);
  check_ends(ends, {1.0, 4.0});
}

TEST_CASE("Threads beyond the cores share them, a server's own thread too") {
  Flows flows;
  MachineCosts machine;
  machine.cores = 2.0;
  const auto cores =
      flows.add_cores([&machine](double threads) { return thread_speed(machine, threads); });
  const auto server = flows.add_server_on(cores);
  std::vector<double> ends;
  const auto note = [&] { ends.push_back(seconds(flows.now())); };
  SECTION("two threads have a core each") {
    for (int i = 0; i < 2; ++i) flows.start(Instant{0}, 0.0, {{cores, 1.0}}, note);
    run(flows);
    check_ends(ends, {1.0, 1.0});
  }
  SECTION("four have half of one") {
    for (int i = 0; i < 4; ++i) flows.start(Instant{0}, 0.0, {{cores, 1.0}}, note);
    run(flows);
    CHECK(ends.back() == Approx(2.0));
  }
  SECTION("two and a busy server have two thirds") {
    for (int i = 0; i < 2; ++i) flows.start(Instant{0}, 0.0, {{cores, 1.0}}, note);
    flows.start(Instant{0}, 0.0, {{server, 1.0}}, note);
    run(flows);
    for (const double end : ends) CHECK(end == Approx(1.5));
  }
}

TEST_CASE("Measured sharing replaces the ideal one, and goes on beyond its list") {
  MachineCosts machine;
  machine.cores = 4.0;
  CHECK(thread_speed(machine, 4.0) == 1.0);
  CHECK(thread_speed(machine, 8.0) == Approx(0.5));
  machine.sharing = {1.0, 0.9};
  CHECK(thread_speed(machine, 1.5) == Approx(0.95));
  CHECK(thread_speed(machine, 4.0) == Approx(0.9));  // cores are free
  CHECK(thread_speed(machine, 8.0) == Approx(0.45));
}

TEST_CASE("A worker's threads are its share of the cores, unless they are given") {
  MachineCosts machine;
  machine.cores = 8.0;
  machine.step_seconds = {8.0, 4.0, 3.0, 2.0};
  CHECK(threads_of(machine, 1) == 4);  // more were not measured
  CHECK(threads_of(machine, 4) == 2);
  CHECK(threads_of(machine, 100) == 1);
  machine.threads = 3;
  CHECK(threads_of(machine, 1) == 3);
  CHECK(step_seconds_of(machine, 3) == 3.0);
}

TEST_CASE("Workers are placed one on each machine, then a second one on each") {
  ClusterCosts cluster = ideal_cluster();
  cluster.machines[0].count = 2;
  cluster.machines[0].workers_max = 2;
  cluster.machines[1].workers_max = 1;
  CHECK(*place_workers(cluster, 5) == std::vector<std::size_t>{0, 1, 2, 0, 1});
  const auto six = place_workers(cluster, 6);
  REQUIRE_FALSE(six);
  CHECK(six.error().code == ErrorCode::kConfig);
  CHECK(six.error().message.find("take 5 workers, not 6") != std::string::npos);
}

// When a worker's write ends that begins while the other one computes, or does not.
double end_of_write(const std::vector<std::size_t>& hosts, bool other_computes) {
  ClusterCosts cluster = ideal_cluster();
  cluster.worker.crowded_seconds = 0.25;
  cluster.store.record_seconds = 0.5;
  EventQueue queue;
  CostModel model(queue, cluster, hosts, 1);
  double end = 0.0;
  if (other_computes) model.compute(1, 1, [] {});
  model.write(0, 1, [&] { end = seconds(queue.now()); });
  while (!queue.empty()) queue.step();
  return end;
}

TEST_CASE("A write waits for a processor where another worker computes") {
  CHECK(end_of_write({0, 0}, true) == Approx(0.75));
  CHECK(end_of_write({0, 0}, false) == Approx(0.5));
  CHECK(end_of_write({0, 1}, true) == Approx(0.5));
}

TEST_CASE("Each kind of update has its traffic") {
  const NetCosts net{.parameters = 100, .batch = 1, .histories = 2};
  UpdateSpec update;
  CHECK(traffic_of(update, net).merge_reads == 100);
  CHECK_FALSE(traffic_of(update, net).reads_after_compute);
  update.kind = UpdateKind::kElastic;
  CHECK(traffic_of(update, net).worker_writes == 100);
  CHECK(traffic_of(update, net).reads_after_compute);
  CHECK(traffic_of(update, net).merge_writes_back == 0);
  update.kind = UpdateKind::kElasticMaster;  // SpeeDO's: x - e goes back through the store
  CHECK(traffic_of(update, net).merge_writes_back == 100);
  update.kind = UpdateKind::kFullDelta;
  update.updater = UpdaterState::kAverage;
  CHECK(traffic_of(update, net).worker_reads == 300);
  update = {.kind = UpdateKind::kGradientOnly};
  CHECK(traffic_of(update, net).checkpoint == 300);
}

TEST_CASE("What cannot be computed with is refused") {
  ClusterCosts cluster = ideal_cluster();
  REQUIRE(check(cluster));
  const auto message = [&] {
    const auto result = check(cluster);
    return result ? std::string() : result.error().message;
  };
  SECTION("a rate") {
    cluster.store.read_bytes_per_second = -1.0;
    CHECK(message().find("store: read_bytes_per_second is -1") != std::string::npos);
  }
  SECTION("a duration") {
    cluster.machines[0].step_seconds = {std::nan("")};
    CHECK(message().find("machine 'worker': step_seconds") != std::string::npos);
  }
  SECTION("a place") {
    cluster.store.machine = "moon";
    CHECK(message() == "store: no machine is named 'moon'");
  }
  SECTION("a size") {
    cluster.net.parameters = UINT64_MAX;
    CHECK(message().find("net: parameters") != std::string::npos);
  }
  SECTION("a crowd") {
    cluster.machines[0].count = 100000;
    CHECK(message().find("at most") != std::string::npos);
  }
}

TEST_CASE("The time to a loss lies between the tests around it") {
  const std::vector<PlanPoint> curve = {
      {0.0, 0, 2.0F, 0.1F}, {10.0, 10, 1.0F, 0.5F}, {20.0, 20, 0.5F, 0.7F}};
  CHECK(*seconds_to_loss(curve, 2.5) == 0.0);
  CHECK(*seconds_to_loss(curve, 1.5) == Approx(5.0));
  CHECK(*seconds_to_loss(curve, 0.5) == Approx(20.0));
  CHECK_FALSE(seconds_to_loss(curve, 0.4).has_value());
  CHECK_FALSE(seconds_to_loss({}, 1.0).has_value());
}

}  // namespace
}  // namespace speedo::sim
