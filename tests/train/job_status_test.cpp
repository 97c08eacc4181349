// What those who watch a job are told by its session.

#include <bit>
#include <chrono>
#include <limits>

#include "support/catch.hpp"

#include "train/master_session_driver.hpp"

namespace speedo {
namespace {

MasterConfig two_workers() {
  MasterConfig config;
  config.workers_start = 2;
  config.max_iteration = 100;
  config.job = "job";
  config.training = {1, 2};
  return config;
}

// In steps, as a leap is time that the process slept.
void let_pass(MasterDriver& master, int from, int to) {
  for (int second = from; second <= to; ++second) {
    master.on(master_event::Tick{std::chrono::seconds(second)});
  }
}

TEST_CASE("A worker prepares, waits, trains and goes, and each is shown") {
  MasterDriver master(two_workers(), "sync");
  let_pass(master, 0, 0);
  master.hello(5);
  JobStatus status = master.session.status();
  REQUIRE(status.workers.size() == 1);
  CHECK(status.workers[0].state == WorkerState::kPreparing);
  CHECK(status.workers[0].name == "host5/1/0");
  CHECK(status.workers[0].device == "cpu");
  master.ready(5, 0);
  CHECK(master.session.status().workers[0].state == WorkerState::kWaiting);
  master.join(6, 1);
  status = master.session.status();
  REQUIRE(status.workers.size() == 2);
  CHECK(status.workers[0].state == WorkerState::kTraining);
  CHECK(status.workers[1].state == WorkerState::kTraining);
  CHECK(status.schedule == "sync");
  CHECK(status.max_iteration == 100);
  CHECK(status.progress.training);

  let_pass(master, 1, 3);
  status = master.session.status();
  CHECK(status.uptime_ms == 3000);
  CHECK(status.workers[0].silent_ms == 3000);
  master.on(master_event::PeerLost{{6}, "its connection broke"});
  let_pass(master, 4, 7);
  status = master.session.status();
  REQUIRE(status.workers.size() == 2);
  CHECK(status.workers[1].state == WorkerState::kGone);
  CHECK(status.workers[1].gone_why == "its connection broke");
  CHECK(status.workers[1].silent_ms == 4000);
  // It returns as another one; the one that was is forgotten after some minutes.
  master.join(7, 2);
  status = master.session.status();
  REQUIRE(status.workers.size() == 3);
  CHECK(status.workers[1].name == "host7/1/0");
  CHECK(status.workers[2].state == WorkerState::kGone);
  let_pass(master, 8, 400);
  CHECK(master.session.status().workers.size() == 2);
}

TEST_CASE("What runs report is added up for each worker, and counted by size") {
  MasterDriver master(two_workers(), "sync");
  let_pass(master, 0, 0);
  master.join(5, 0);
  master.join(6, 1);
  master_event::Trained first{{5}, {0, 0, 0, 0, 10, {1, 20000, 30000, 40000, 5}, {100, 200}}};
  first.message.read_faults = {3, 1};
  master.on(first);
  master_event::Trained second{{6}, {1, 1, 0, 0, 10, {0, 0, 7000, 0, 0}, {}}};
  second.message.read_faults = {2, 0};
  master.on(second);
  master.merged(0, 1);
  const JobStatus status = master.session.status();
  CHECK(status.workers[0].phases == PhaseTimes{1, 20000, 30000, 40000, 5});
  CHECK(status.workers[0].traffic == Traffic{100, 200});
  CHECK(status.workers[0].runs == 1);
  CHECK(status.workers[0].samples == 10);
  CHECK(status.workers[1].phases.backward_us == 7000);
  CHECK(status.progress.phases.backward_us == 37000);
  CHECK(status.workers[0].read_faults == ReadFaults{3, 1});
  CHECK(status.workers[1].read_faults == ReadFaults{2, 0});
  CHECK(status.progress.read_faults == ReadFaults{5, 1});
  CHECK(status.run_seconds.counts()[1] == 1);  // up to 10 ms
  CHECK(status.run_seconds.counts()[4] == 1);  // up to 100 ms
  CHECK(status.run_seconds.sum() == Approx(0.097001));
  CHECK(status.staleness.counts()[0] == 2);
  CHECK(status.progress.iteration == 1);
}

TEST_CASE("Staleness and what was dropped are shown with the worker that they are of") {
  MasterDriver master(two_workers(), "async");
  let_pass(master, 0, 0);
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0);
  master.merged(0, 1);
  master.trained(6, 1, 1);  // of the weights before that
  master.merged(1, 2);
  JobStatus status = master.session.status();
  CHECK(status.workers[0].staleness == 0);
  CHECK(status.workers[1].staleness == 1);
  CHECK(status.staleness.counts()[0] == 1);
  CHECK(status.staleness.counts()[1] == 1);

  master.trained(5, 0, 2, std::numeric_limits<float>::quiet_NaN(), 1);
  status = master.session.status();
  CHECK(status.workers[0].dropped == 1);
  CHECK(status.workers[1].dropped == 0);
}

TEST_CASE("A job that is over says so") {
  MasterDriver master(two_workers(), "sync");
  master.join(5, 0);
  master.join(6, 1);
  CHECK_FALSE(master.session.status().over);
  master.on(master_event::StopRequested{"asked to"});
  CHECK(master.session.status().over);
}

}  // namespace
}  // namespace speedo
