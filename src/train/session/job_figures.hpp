#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>

#include <speedo/base/clock.hpp>
#include <speedo/train/job_status.hpp>
#include <speedo/train/messages.hpp>

#include "train/session/contribution.hpp"
#include "train/session/rate_window.hpp"

namespace speedo {

// What a job and each of its workers have done under this master, for those who watch it. Nothing
// is decided by it. Of workers that are gone it knows the last few, for some minutes.
// Thread safety: one thread. Times come from the caller.
class JobFigures {
 public:
  void admitted(WorkerId worker, const HelloMessage& hello);
  void ordered(WorkerId worker, std::uint64_t iteration);
  void reported(WorkerId worker, const TrainedMessage& message, Instant now);
  // One merge. `newest`: the version before it.
  void merged(std::span<const Contribution> contributions, Version newest, Instant now);
  void dropped(WorkerId worker);
  void gone(WorkerId worker, const std::string& why, Instant now);

  // Rates, histograms, and a row for each worker: without state and silence unless it is gone.
  void show(JobStatus& status, Instant now) const;

 private:
  struct Worker {
    WorkerStatus status;
    RateWindow images, bytes;
  };
  struct Gone {
    WorkerStatus status;
    Instant since;
  };
  WorkerStatus* find(WorkerId worker);

  std::map<WorkerId, Worker> workers_;
  std::deque<Gone> gone_;  // the oldest first
  RateWindow merges_, images_;
  JobStatus seen_;         // only its histograms
};

}  // namespace speedo
