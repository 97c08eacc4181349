// SpeeDO's published experiments, rebuilt in examples/simulate: the planner must give their order
// and shape. Values and errors are in tests/bench/RESULTS.md.

#include <vector>

#include "measure/simulate/simulate_plan_file.hpp"
#include "plan_support.hpp"

namespace speedo::sim {
namespace {

const std::string kExamples = std::string(SPEEDO_SOURCE_DIR) + "/examples/simulate/";

// As SpeeDO exchanged: its elastic averaging went through the master.
double speed_up(const ClusterCosts& cluster, const char* schedule, std::uint64_t workers) {
  PlanOptions options;
  options.workers = workers;
  options.iterations = 200;
  options.schedule = *make_schedule(*parse_plan_schedule(schedule), workers, std::nullopt);
  if (is_elastic(options.schedule.update.kind)) {
    options.schedule.update.kind = UpdateKind::kElasticMaster;
  }
  const auto result = plan(cluster, options);
  REQUIRE(result);
  return result->speed_up;
}

TEST_CASE("SpeeDO's CIFAR-10: elastic averaging before synchronous, both grow with the workers") {
  const auto cluster = read_cluster(kExamples + "speedo_cifar10.toml");
  if (!cluster) FAIL(cluster.error().message);
  double last_sync = 1.0, last_elastic = 1.0;
  for (const std::uint64_t workers : {2U, 3U, 4U}) {
    CAPTURE(workers);
    const double sync = speed_up(*cluster, "sync", workers);
    const double elastic = speed_up(*cluster, "easgd", workers);
    CHECK(elastic > sync);
    CHECK(sync > last_sync);
    CHECK(elastic > last_elastic);
    last_sync = sync;
    last_elastic = elastic;
  }
}

TEST_CASE("SpeeDO's GoogLeNet: the exchange holds it back, synchronous is flat near 1.2") {
  const auto cluster = read_cluster(kExamples + "speedo_googlenet.toml");
  if (!cluster) FAIL(cluster.error().message);
  for (const std::uint64_t workers : {2U, 3U, 4U}) {
    CAPTURE(workers);
    const double sync = speed_up(*cluster, "sync", workers);
    CHECK(speed_up(*cluster, "easgd", workers) > sync);
    CHECK(sync > 0.9);
    CHECK(sync < 1.5);
  }
  // The published curve of 2 to 8 workers is within 12 % of its end from 5 workers on.
  const double end = speed_up(*cluster, "easgd", 8);
  CHECK(speed_up(*cluster, "easgd", 5) == Approx(end).epsilon(0.12));
  CHECK(speed_up(*cluster, "easgd", 2) < 0.9 * end);
  CHECK(end < 3.0);
}

}  // namespace
}  // namespace speedo::sim
