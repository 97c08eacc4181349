// What the durations are made of: shared resources, machines, a net's traffic.

#include <cmath>
#include <vector>

#include "plan_support.hpp"
#include "sim/plan/cost_model.hpp"
#include "sim/plan/plan_train.hpp"

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

// Cores of a machine without a measured sharing.
struct CoresTest {
  Flows flows;
  MachineCosts machine;
  Flows::ResourceId cores;
  std::vector<double> ends;

  explicit CoresTest(double count) {
    machine.cores = count;
    cores = flows.add_cores(count,
                            [this](double threads) { return thread_speed(machine, threads); });
  }
  void start(double seconds, std::vector<Flows::Use> uses) {
    flows.start(Instant{0}, seconds, std::move(uses),
                [this] { ends.push_back(seconds_now()); });
  }
  double seconds_now() const { return std::chrono::duration<double>(flows.now()).count(); }
};

TEST_CASE("Threads beyond the cores share them, a server's own thread too") {
  CoresTest test(2.0);
  const auto server = test.flows.add_server();
  SECTION("two threads have a core each") {
    for (int i = 0; i < 2; ++i) test.start(0.0, {{test.cores, 1.0}});
    run(test.flows);
    check_ends(test.ends, {1.0, 1.0});
  }
  SECTION("four have half of one") {
    for (int i = 0; i < 4; ++i) test.start(0.0, {{test.cores, 1.0}});
    run(test.flows);
    CHECK(test.ends.back() == Approx(2.0));
  }
  SECTION("two and a busy server have two thirds") {
    for (int i = 0; i < 2; ++i) test.start(0.0, {{test.cores, 1.0}});
    test.start(0.0, {{server, 1.0}, {test.cores, 1.0}});
    run(test.flows);
    for (const double end : test.ends) CHECK(end == Approx(1.5));
  }
}

TEST_CASE("Who wants less of a core than its share gets all of it, and leaves the rest") {
  CoresTest test(1.0);
  test.start(1.0, {{test.cores, 0.25}});  // waits for three quarters of its time
  test.start(0.0, {{test.cores, 0.75}});
  run(test.flows);
  check_ends(test.ends, {1.0, 1.0});
}

TEST_CASE("What is held up elsewhere leaves its share of the cores to others") {
  CoresTest test(2.0);
  const auto link = test.flows.add_server();
  // Two that share the link need half a core each then: with the computing thread, 2 cores.
  test.start(0.0, {{link, 1.0}, {test.cores, 1.0}});
  test.start(0.0, {{link, 1.0}, {test.cores, 1.0}});
  test.start(0.0, {{test.cores, 2.0}});
  run(test.flows);
  check_ends(test.ends, {2.0, 2.0, 2.0});
}

TEST_CASE("Flows of one party have one share together") {
  Flows flows;
  const auto server = flows.add_server();
  std::vector<double> ends;
  const auto note = [&] { ends.push_back(seconds(flows.now())); };
  for (int i = 0; i < 2; ++i) flows.start(Instant{0}, 0.0, {{server, 1.0}}, note, 7);
  flows.start(Instant{0}, 0.0, {{server, 1.0}}, note, 8);
  run(flows);
  // The one of the other party has half of the server, and is done first.
  check_ends(ends, {2.0, 3.0, 3.0});
}

TEST_CASE("Threads within the cores slow each other down as was measured") {
  CoresTest test(2.0);
  test.machine.sharing = {1.0, 0.8};
  for (int i = 0; i < 2; ++i) test.start(0.0, {{test.cores, 1.0}});
  run(test.flows);
  check_ends(test.ends, {1.25, 1.25});
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

TEST_CASE("Computing and exchanging on the same cores slow each other down") {
  Flows flows;
  const auto cores = flows.add_cores(2.0, [](double) { return 1.0; }, 0.5);
  std::vector<double> ends;
  const auto note = [&] { ends.push_back(seconds(flows.now())); };
  flows.start(Instant{0}, 0.0, {{cores, 1.0, 1.0, true}}, note);
  flows.start(Instant{0}, 0.0, {{cores, 0.5}}, note);
  run(flows);
  // Half as fast for a second, then one is alone.
  check_ends(ends, {1.0, 1.5});
}

// When a worker's record is finished while the other one computes, or does not.
double end_of_record(const std::vector<std::size_t>& hosts, bool other_computes) {
  ClusterCosts cluster = ideal_cluster();
  cluster.worker.crowded_seconds = 0.25;
  cluster.store.record_seconds = 0.5;
  EventQueue queue;
  CostModel model(queue, cluster, hosts, 1);
  double end = 0.0;
  if (other_computes) model.compute(1, 1.0, [] {});
  model.write(0, {.floats = 1}, [] {});
  model.finish(0, [&] { end = seconds(queue.now()); });
  while (!queue.empty()) queue.step();
  return end;
}

TEST_CASE("A record's end waits for a processor where another worker computes") {
  CHECK(end_of_record({0, 0}, true) == Approx(0.75));
  CHECK(end_of_record({0, 0}, false) == Approx(0.5));
  CHECK(end_of_record({0, 1}, true) == Approx(0.5));
}

// Records of the net that pass the store for each merge of one contribution.
double records_per_merge(const UpdateSpec& update) {
  ClusterCosts cluster = ideal_cluster();
  cluster.net.histories = 2;
  PlanOptions options;
  options.schedule.strategy.name = "async";
  options.schedule.update = update;
  options.iterations = 1000;
  const auto result = plan(cluster, options);
  REQUIRE(result);
  return result->bytes_per_iteration / (4.0 * static_cast<double>(cluster.net.parameters));
}

TEST_CASE("Each kind of update has its traffic") {
  UpdateSpec update;
  CHECK(records_per_merge(update) == Approx(4.0).epsilon(0.01));
  update.updater = UpdaterState::kAverage;
  CHECK(records_per_merge(update) == Approx(12.0).epsilon(0.01));
  update = {};
  update.moving_rate = 0.5F;
  update.kind = UpdateKind::kElastic;
  CHECK(records_per_merge(update) == Approx(4.0).epsilon(0.01));
  update.kind = UpdateKind::kElasticMaster;  // SpeeDO's: x - e goes back through the store
  CHECK(records_per_merge(update) == Approx(5.0).epsilon(0.01));
  update = {};
  update.kind = UpdateKind::kGradientOnly;  // a checkpoint of weights and histories
  CHECK(records_per_merge(update) == Approx(7.0).epsilon(0.01));
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
  SECTION("a rate with which the weights would take days") {
    cluster.net.parameters = 21600;
    for (double* rate :
         {&cluster.machines[0].bytes_per_second, &cluster.store.read_bytes_per_second,
          &cluster.worker.client_bytes_per_second}) {
      const double before = *rate;
      *rate = 1.0;
      CHECK(message() == "");
      *rate = 0.999;
      CHECK(
          message().find("bytes_per_second is 0.999: for weights of 86400 bytes at least 1 can") !=
          std::string::npos);
      *rate = 1e-300;
      CHECK_FALSE(message().empty());
      *rate = before;
    }
  }
  SECTION("a duration") {
    cluster.machines[0].step_seconds = {std::nan("")};
    CHECK(message().find("machine 'worker': step_seconds") != std::string::npos);
  }
  SECTION("a delay of days") {
    cluster.network.latency_seconds = 1e6;
    CHECK(message() ==
          "network: latency_seconds is 1000000: at most 3600 can be simulated");
    cluster.network.latency_seconds = 0.0;
    cluster.worker.run_seconds = 3601.0;
    CHECK(message().find("worker: run_seconds is 3601: at most 3600") == 0);
  }
  SECTION("a place") {
    cluster.store.machine = "moon";
    CHECK(message() == "store: no machine is named 'moon'");
  }
  SECTION("a size") {
    cluster.net.parameters = UINT64_MAX;
    CHECK(message().find("net: parameters") != std::string::npos);
  }
  SECTION("buckets of another net") {
    cluster.net.buckets = {{.parameters = 1, .needed = 0.0, .final = 1.0}};
    CHECK(message().find("net: 1 buckets have 1 parameters together") != std::string::npos);
  }
  SECTION("a moment") {
    cluster.net.buckets = {{.parameters = cluster.net.parameters, .needed = 1.5, .final = 1.0}};
    CHECK(message().find("net: a bucket's first use is 1.5") != std::string::npos);
  }
  SECTION("a gradient before its weights are used") {
    cluster.net.buckets = {{.parameters = cluster.net.parameters, .needed = 0.9, .final = 0.1}};
    CHECK(message() == "net: a bucket's end is 0.1, before its first use, 0.9");
    cluster.net.buckets[0].final = 0.9;
    CHECK(message() == "");
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
