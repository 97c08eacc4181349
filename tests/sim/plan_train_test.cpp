// A small net really trained under simulated timing, on generated records.

#include <memory>
#include <string>

#include "measure/calibrate/calibrate_buckets.hpp"
#include "plan_support.hpp"
#include "sim/plan/plan_train.hpp"
#include "support/generated_parts.hpp"

namespace speedo::sim {
namespace {

JobSpec small_job() {
  JobSpec job;
  job.solver_text = R"(
      base_lr: 0.05 lr_policy: "fixed" momentum: 0.9 random_seed: 1 test_iter: 4 test_interval: 50
      net_param {
        layer { name: "points" type: "Data" top: "data" top: "label"
                data_param { source: "generated" batch_size: 32 } }
        layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
                inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
        layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
        layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
                inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
        layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
      })";
  return job;
}

PlanResult train(const std::string& schedule, std::uint64_t workers, std::uint64_t iterations) {
  const ClusterCosts cluster = ideal_cluster();
  PlanOptions options;
  options.schedule = *make_schedule(*parse_plan_schedule(schedule), workers, std::nullopt);
  options.workers = workers;
  options.iterations = iterations;
  options.test_interval = iterations / 2;
  const TrainedNetOptions net_options{
      small_job(), options.schedule, workers,
      cluster.net.batch * options.schedule.update.steps_per_run};
  auto net = make_trained_net(test::cpu_parts(), net_options);
  if (!net) FAIL(net.error().message);
  auto result = plan(cluster, options, **net);
  if (!result) FAIL(result.error().message);
  return *result;
}

TEST_CASE("The loss falls with virtual time, the same in every plan of the seed") {
  const PlanResult first = train("async", 3, 60);
  REQUIRE(first.curve.size() == 3);  // before training, half-way, at the end
  CHECK(first.curve.front().loss == Approx(1.4F).margin(0.4));  // about ln 4
  CHECK(first.curve.back().loss < 0.6F * first.curve.front().loss);
  CHECK(first.curve.back().seconds == Approx(20.0).margin(1.0));
  const PlanResult again = train("async", 3, 60);
  for (std::size_t i = 0; i < 3; ++i) CHECK(first.curve[i].loss == again.curve[i].loss);
}

TEST_CASE("One worker learns the same in rounds and without") {
  const PlanResult sync = train("sync", 1, 20);
  const PlanResult async = train("async", 1, 20);
  CHECK(sync.curve.back().loss == async.curve.back().loss);
}

TEST_CASE("Elastic averaging and averaging learn, too") {
  for (const char* schedule : {"easgd", "sync-easgd", "averaging"}) {
    CAPTURE(schedule);
    const PlanResult result = train(schedule, 2, 100);
    CHECK(result.curve.back().loss < 0.9F * result.curve.front().loss);
  }
}

TEST_CASE("One worker without a cluster is what speed-ups are relative to") {
  const ClusterCosts alone = without_cluster(ideal_cluster());
  CHECK(alone.machines.size() == 1);
  CHECK(plan_of(alone, "async", 1).speed_up == Approx(1.0));
}

TEST_CASE("Buckets are measured in production's order, and hold all parameters") {
  JobSpec job = small_job();
  const bool clips = GENERATE(false, true);
  if (clips) job.solver_text += " clip_gradients: 1";
  const CalibrateParts parts{[](const ComputeOptions&) { return test::cpu_parts(); }, {}};
  const auto times = measure_buckets(job, {}, 0.0, parts);
  if (!times) FAIL(times.error().message);
  CHECK(times->clips == clips);
  REQUIRE(times->buckets.size() == 2);
  const BucketCosts& first = times->buckets[0];
  const BucketCosts& last = times->buckets[1];
  CHECK(last.parameters == 4 * 16 + 16);  // a bias of 4 is padded to 64 bytes
  CHECK(first.parameters % 16 == 0);
  CHECK(first.needed <= last.needed);
  CHECK(last.needed <= last.final);
  CHECK(last.final <= first.final);
  CHECK(first.final <= 1.0);
  CHECK(times->update >= 0.0);
  CHECK(times->update < 1.0);
}

}  // namespace
}  // namespace speedo::sim
