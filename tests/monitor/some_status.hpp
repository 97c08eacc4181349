#pragma once

#include <string>

#include <speedo/train/job_status.hpp>

namespace speedo::test {

// A job of two workers, one of which is gone.
inline JobStatus some_status() {
  JobStatus status;
  status.job = "mnist";
  status.training = "c28f58b21a6a5836";
  status.schedule = "sync";
  status.max_iteration = 1000;
  status.workers_min = 1;
  status.uptime_ms = 62000;
  status.merges_per_second = 10.0;
  status.images_per_second = 1280.0;
  MasterProgress& progress = status.progress;
  progress.training = true;
  progress.iteration = progress.merges = 500;
  progress.contributions = 1000;
  progress.discarded = 3;
  progress.rejected = 2;
  progress.ignored = 9;
  progress.samples = 64000;
  progress.staleness_sum = 250.0;
  progress.last_loss = 0.25F;
  progress.accuracy = 0.9712F;
  progress.workers_alive = 1;
  progress.phases = {1000000, 2000000, 4000000, 2000000, 1000000};
  progress.traffic = {1000, 2000};
  progress.read_faults = {7, 4};
  status.staleness.add(0);
  status.staleness.add(5);
  status.run_seconds.add(0.02);
  WorkerStatus row;
  row.worker = {0};
  row.name = "node-with-a-rather-long-name.cluster.example.org/12345/0";
  row.device = "cpu";
  row.state = WorkerState::kTraining;
  row.iteration = 500;
  row.runs = 10;
  row.images_per_second = 640.0;
  row.bytes_per_second = 12.9e6;
  row.silent_ms = 300;
  row.phases = {100, 200, 400, 200, 100};
  row.read_faults = {5, 1};
  status.workers.push_back(row);
  row.worker = {1};
  row.name = "b/1/0";
  row.state = WorkerState::kGone;
  row.gone_why = "its connection broke";
  row.silent_ms = 83000;
  status.workers.push_back(row);
  return status;
}

}  // namespace speedo::test
