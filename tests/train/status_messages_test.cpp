#include "train/status_messages.hpp"

#include <limits>

#include "support/catch.hpp"

namespace speedo {
namespace {

WorkerStatus some_worker(std::uint64_t number) {
  WorkerStatus row;
  row.worker = {number};
  row.name = "host/1/" + std::to_string(number);
  row.device = "cpu";
  row.state = WorkerState::kTraining;
  row.iteration = 10 + number;
  row.runs = 11;
  row.samples = 12;
  row.dropped = 13;
  row.staleness = 14;
  row.silent_ms = 15;
  row.images_per_second = 16.5;
  row.bytes_per_second = 17.5;
  row.phases = {1, 2, 3, 4, 5};
  row.traffic = {6, 7};
  row.read_faults = {8, 9};
  return row;
}

JobStatus some_status() {
  JobStatus status;
  status.job = "job";
  status.training = "abc";
  status.schedule = "sync";
  status.stages = 3;
  status.max_iteration = 1000;
  status.workers_min = 2;
  status.uptime_ms = 77;
  status.store_away = true;
  status.merges_per_second = 2.5;
  status.images_per_second = 80.0;
  status.progress.iteration = 12;
  status.progress.merges = 11;
  status.progress.contributions = 22;
  status.progress.last_loss = 0.125F;
  status.progress.accuracy = 0.75F;
  status.progress.staleness_sum = 33.0;
  status.progress.stage = 1;
  status.progress.ignored = 6;
  status.progress.read_faults = {4, 5};
  status.progress.training = true;
  status.workers = {some_worker(0), some_worker(1)};
  status.workers[1].state = WorkerState::kGone;
  status.workers[1].gone_why = "its connection broke";
  return status;
}

TEST_CASE("A status arrives as it was, once all its rows are there") {
  const JobStatus status = some_status();
  const StatusMessages messages = to_messages(status);
  REQUIRE(messages.workers.size() == 2);
  StatusAssembly assembly;
  assembly.add(messages.workers[0]);  // of nothing
  CHECK_FALSE(assembly.take());
  assembly.begin(messages.job);
  assembly.add(messages.workers[0]);
  CHECK_FALSE(assembly.take());
  assembly.add(messages.workers[1]);
  const auto arrived = assembly.take();
  REQUIRE(arrived);
  CHECK_FALSE(assembly.take());
  CHECK(arrived->workers == status.workers);
  CHECK(arrived->job == "job");
  CHECK(arrived->training == "abc");
  CHECK(arrived->schedule == "sync");
  CHECK(arrived->stages == 3);
  CHECK(arrived->max_iteration == 1000);
  CHECK(arrived->workers_min == 2);
  CHECK(arrived->uptime_ms == 77);
  CHECK(arrived->store_away);
  CHECK_FALSE(arrived->over);
  CHECK(arrived->merges_per_second == 2.5);
  CHECK(arrived->images_per_second == 80.0);
  CHECK(arrived->progress.iteration == 12);
  CHECK(arrived->progress.last_loss == 0.125F);
  CHECK(arrived->progress.accuracy == 0.75F);
  CHECK_FALSE(arrived->progress.test_loss);
  CHECK(arrived->progress.staleness_sum == 33.0);
  CHECK(arrived->progress.ignored == 6);
  CHECK(arrived->progress.read_faults == ReadFaults{4, 5});
  CHECK(arrived->progress.training);
  CHECK_FALSE(arrived->progress.paused);
}

TEST_CASE("Rows beyond those announced, states and rates of no meaning harm nothing") {
  StatusMessages messages = to_messages(some_status());
  messages.job.rows = 1;
  messages.workers[0].state = 99;
  messages.workers[0].images_rate_bits = std::numeric_limits<std::uint64_t>::max();  // NaN
  StatusAssembly assembly;
  assembly.begin(messages.job);
  assembly.add(messages.workers[0]);
  assembly.add(messages.workers[1]);
  const auto arrived = assembly.take();
  REQUIRE(arrived);
  REQUIRE(arrived->workers.size() == 1);
  CHECK(arrived->workers[0].state == WorkerState::kPreparing);
  CHECK(arrived->workers[0].images_per_second == 0.0);
}

}  // namespace
}  // namespace speedo
