#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/train/job_status.hpp>

namespace speedo {

// What a process knows of itself beside the job.
struct ProcessFigures {
  std::string version;
  struct Errors {
    std::string kind;
    std::uint64_t count;
  };
  std::vector<Errors> redis_errors;
  std::int64_t resident_bytes = 0;  // 0: unknown
  double cpu_seconds = 0.0;
  double start_seconds = 0.0;       // since 1970
};

// Prometheus' text format, version 0.0.4. Nothing carries the name of a worker: those come and go
// without limit. `job` may be null: the master has not begun.
std::string metrics_text(const JobStatus* job, const ProcessFigures& process);

}  // namespace speedo
