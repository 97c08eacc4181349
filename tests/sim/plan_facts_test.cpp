// Facts about schedules that a plan must show, whatever its durations are.

#include <algorithm>

#include "cli/make_schedule.hpp"
#include "plan_support.hpp"

namespace speedo::sim {
namespace {

TEST_CASE("Equal machines and an exchange that takes no time: N workers are N times as fast") {
  const ClusterCosts cluster = ideal_cluster();
  for (const char* schedule : {"sync", "async", "partial-sync", "ssp", "easgd", "averaging"}) {
    for (const std::uint64_t workers : {1U, 2U, 5U, 16U}) {
      CAPTURE(schedule, workers);
      const PlanResult result = plan_of(cluster, schedule, workers, 1, 240);
      CHECK(result.speed_up == Approx(static_cast<double>(workers)).epsilon(0.01));
      CHECK(result.iterations == 240);
    }
  }
}

TEST_CASE("A synchronous round waits for its slowest step") {
  ClusterCosts cluster = ideal_cluster();
  cluster.machines[0].step_spread = 0.3;
  const PlanResult sync = plan_of(cluster, "sync", 8);
  const PlanResult async = plan_of(cluster, "async", 8);
  CHECK(async.speed_up > 7.5);
  CHECK(sync.speed_up < 0.75 * async.speed_up);
  CHECK(sync.staleness == 0.0);
  CHECK(async.staleness == Approx(7.0).margin(0.5));
}

TEST_CASE("A serial store bounds every schedule, and asynchronous ones reach the bound") {
  ClusterCosts cluster = ideal_cluster();
  const double record_bytes = 4.0 * static_cast<double>(cluster.net.parameters);
  // A tenth of a second for each of the four passes of a contribution through the store.
  cluster.store.read_bytes_per_second = record_bytes / 0.1;
  cluster.store.write_bytes_per_second = record_bytes / 0.1;
  for (const char* schedule : {"sync", "async", "ssp", "weedout", "easgd", "grouping"}) {
    CAPTURE(schedule);
    CHECK(plan_of(cluster, schedule, 24).speed_up < 10.1);
  }
  const PlanResult async = plan_of(cluster, "async", 24, 1, 800);
  CHECK(async.speed_up == Approx(2.5).epsilon(0.05));
  CHECK(async.store_busy > 0.95);
  CHECK(async.bytes_per_iteration == Approx(4.0 * record_bytes).epsilon(0.15));
}

TEST_CASE("More local steps between exchanges take load off the store") {
  ClusterCosts cluster = ideal_cluster();
  cluster.store.write_bytes_per_second = 4.0 * static_cast<double>(cluster.net.parameters);
  const PlanResult each = plan_of(cluster, "easgd", 8);
  const PlanResult tenth = plan_of(cluster, "easgd:10", 8);
  CHECK(tenth.speed_up > 3.0 * each.speed_up);
}

TEST_CASE("SpeeDO's elastic form is slower than the paper's where the store is the bottleneck") {
  ClusterCosts cluster = ideal_cluster();
  cluster.store.write_bytes_per_second = 4.0 * static_cast<double>(cluster.net.parameters);
  PlanOptions options;
  options.workers = 8;
  options.schedule = *make_schedule(*parse_plan_schedule("easgd"), 8, 0.1F);
  const auto paper = plan(cluster, options);
  options.schedule.update.kind = UpdateKind::kElasticMaster;
  const auto original = plan(cluster, options);
  REQUIRE(paper);
  REQUIRE(original);
  CHECK(original->speed_up < 0.8 * paper->speed_up);
}

TEST_CASE("One slow machine holds up rounds and bounded leads, but not asynchronous schedules") {
  ClusterCosts cluster = ideal_cluster();
  cluster.machines[0].count = 3;
  MachineCosts slow = cluster.machines[0];
  slow.name = "slow";
  slow.count = 1;
  slow.step_seconds = {5.0};
  cluster.machines.insert(cluster.machines.begin() + 1, slow);
  const double sync = plan_of(cluster, "sync", 4).speed_up;
  const PlanResult weedout = plan_of(cluster, "weedout", 4);
  const double async = plan_of(cluster, "async", 4).speed_up;
  CHECK(sync == Approx(0.8).epsilon(0.02));
  CHECK(async == Approx(3.2).epsilon(0.02));
  CHECK(weedout.speed_up > 2.9);
  CHECK(weedout.discarded > 0);
  CHECK(plan_of(cluster, "ssp:2", 4).speed_up < 1.2);
  CHECK(plan_of(cluster, "partial-sync:2", 4).speed_up < async);
  CHECK(plan_of(cluster, "grouping", 4).speed_up > 2.0 * sync);
}

TEST_CASE("A longer wire, a slower link and a busier master never make it faster") {
  const ClusterCosts base = ideal_cluster();
  for (const char* schedule : {"sync", "async", "easgd"}) {
    CAPTURE(schedule);
    double last = plan_of(base, schedule, 6).speed_up;
    for (const double seconds : {0.001, 0.01, 0.1}) {
      ClusterCosts cluster = base;
      cluster.network.latency_seconds = seconds;
      cluster.master.merge_seconds = seconds;
      cluster.master.message_seconds = seconds;
      for (MachineCosts& machine : cluster.machines) machine.bytes_per_second = 1e6 / seconds;
      const double here = plan_of(cluster, schedule, 6).speed_up;
      CHECK(here < last);
      last = here;
    }
  }
}

TEST_CASE("A master is not busier than all the time, and the longer of its two kinds of work") {
  ClusterCosts cluster = ideal_cluster();
  cluster.machines[0].step_seconds = {0.02};
  cluster.master.merge_seconds = 500e-6;
  cluster.master.message_seconds = 100e-6;
  const PlanResult merging = plan_of(cluster, "async", 64, 1, 2000);
  CHECK(merging.master_busy > 0.9);
  CHECK(merging.master_busy <= 1.0);
  CHECK(merging.messages_busy < merging.master_busy);
  std::swap(cluster.master.merge_seconds, cluster.master.message_seconds);
  const PlanResult talking = plan_of(cluster, "async", 64, 1, 2000);
  CHECK(talking.master_busy > 0.9);
  CHECK(talking.master_busy <= 1.0);
  CHECK(talking.messages_busy == talking.master_busy);
}

TEST_CASE("Workers of one machine share its cores") {
  ClusterCosts cluster = ideal_cluster();
  cluster.machines.erase(cluster.machines.begin());
  cluster.machines[0].cores = 2.0;
  CHECK(plan_of(cluster, "async", 2).speed_up == Approx(2.0).epsilon(0.02));
  CHECK(plan_of(cluster, "async", 4).speed_up == Approx(2.0).epsilon(0.02));
  CHECK(plan_of(cluster, "sync", 4).speed_up == Approx(2.0).epsilon(0.02));
}

TEST_CASE("The same seed gives the same plan, another one another") {
  ClusterCosts cluster = ideal_cluster();
  cluster.machines[0].step_spread = 0.2;
  cluster.store.read_bytes_per_second = 3e6;
  for (const char* schedule : {"sync", "async", "weedout", "grouping", "easgd"}) {
    CAPTURE(schedule);
    const PlanResult first = plan_of(cluster, schedule, 5, 7);
    const PlanResult again = plan_of(cluster, schedule, 5, 7);
    CHECK(first.seconds == again.seconds);
    CHECK(first.staleness == again.staleness);
    CHECK(first.discarded == again.discarded);
    CHECK(first.seconds != plan_of(cluster, schedule, 5, 8).seconds);
  }
}

TEST_CASE("Schedules are named with their own number") {
  CHECK(parse_plan_schedule("ssp:5")->strategy.staleness == 5);
  CHECK(parse_plan_schedule("partial-sync:7")->strategy.max_advance == 7);
  CHECK(parse_plan_schedule("drop:3")->strategy.window == 3);
  CHECK(parse_plan_schedule("easgd:10")->steps == 10U);
  CHECK(parse_plan_schedules("all")->size() == strategy_registry().size());
  for (const char* name : {"ssp", "partial-sync", "weedout"}) {
    CAPTURE(name);
    ScheduleFlags flags;
    flags.strategy = name;
    const auto trained = speedo::make_schedule(flags, 4, FlagScope::kJob);
    REQUIRE(trained);
    const StrategyOptions planned = parse_plan_schedule(name)->strategy;
    CHECK(planned.staleness == trained->strategy.staleness);
    CHECK(planned.max_advance == trained->strategy.max_advance);
    CHECK(planned.window == trained->strategy.window);
  }
  for (const char* bad : {"", "nosuch", "easgd:", "easgd:0", "easgd:x", "ssp:-1", "weedout:0",
                          "sync,sync", "sync:99999999999999999999"}) {
    CAPTURE(bad);
    const auto result = parse_plan_schedules(bad);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::kUsage);
  }
}

TEST_CASE("Gradients alone are contributed by schedules of full deltas of one mini-batch") {
  const auto kind = [](const char* schedule) {
    const auto made = make_schedule(*parse_plan_schedule(schedule), 2, std::nullopt,
                                    Contributes::kGradients);
    if (!made) CHECK(made.error().code == ErrorCode::kUsage);
    return made ? std::optional(made->update.kind) : std::nullopt;
  };
  CHECK(kind("sync") == UpdateKind::kGradientOnly);
  CHECK(kind("async") == UpdateKind::kGradientOnly);
  CHECK_FALSE(kind("easgd").has_value());
  CHECK_FALSE(kind("averaging").has_value());
}

TEST_CASE("A plan that would take years is refused") {
  ClusterCosts cluster = ideal_cluster();
  cluster.machines[0].step_seconds = {86400.0};
  PlanOptions options;
  options.iterations = 100000;
  const auto result = plan(cluster, options);
  REQUIRE_FALSE(result);
  CHECK(result.error().message.find("ten years") != std::string::npos);
}

}  // namespace
}  // namespace speedo::sim
