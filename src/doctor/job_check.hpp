#pragma once

#include <cstdint>
#include <string>

#include <speedo/backend/backend.hpp>
#include <speedo/core/batch_feed.hpp>

#include "cli/net_inputs.hpp"
#include "doctor/finding.hpp"

namespace speedo {

// What a job needs, as far as its nets could be planned.
struct JobNeed {
  std::int64_t weight_bytes = 0;   // 0: not known
  // Of one process that trains it, on the host and on a device with memory of its own; 0: not
  // known, or none.
  std::int64_t process_bytes = 0;
  std::int64_t device_bytes = 0;
};

// "solver", "net and data", "snapshot folder" and "snapshot room" of a job that is to be trained
// here. Its nets are planned, not computed. Errors are findings.
Findings check_job(const std::string& solver_file, const StateFlags& state, Backend& backend,
                   FeedFactory& feeds, JobNeed& need);

}  // namespace speedo
