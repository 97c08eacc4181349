#pragma once

#include <memory>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/train/job_status.hpp>

#include "monitor/http_server.hpp"
#include "monitor/job_monitor.hpp"

namespace speedo {

// --metrics-addr: the page of a master, as long as this lives.
// Thread safety: take() from any thread.
class JobPage {
 public:
  // Empty: nothing is served, and null is given. Says in the log where it is. Errors: kUsage,
  // kUnavailable.
  static Result<std::unique_ptr<JobPage>> open(const std::string& metrics_addr);

  void take(JobStatus status) { monitor_.take(std::move(status)); }

 private:
  JobPage();

  JobMonitor monitor_;
  std::unique_ptr<HttpServer> server_;  // asks the monitor
};

}  // namespace speedo
