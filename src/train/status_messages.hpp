#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/job_status.hpp>
#include <speedo/train/messages.hpp>

namespace speedo {

// A JobStatus on its way, without its histograms: those are for the master's own page.
struct StatusMessages {
  JobStatusMessage job;
  std::vector<WorkerStatusMessage> workers;
};
StatusMessages to_messages(const JobStatus& status);

// The other end: puts a status together from its messages, in the order that they came.
// Thread safety: one thread.
class StatusAssembly {
 public:
  void begin(const JobStatusMessage& message);
  // Not an error: nothing was begun, it is dropped.
  void add(const WorkerStatusMessage& message);
  // Once all rows are there; then none until the next begin().
  std::optional<JobStatus> take();

 private:
  std::optional<JobStatus> status_;
  std::uint64_t rows_ = 0;
};

}  // namespace speedo
