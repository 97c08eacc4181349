#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include <speedo/base/clock.hpp>
#include <speedo/train/job_status.hpp>

#include "monitor/curve_history.hpp"
#include "monitor/http_server.hpp"
#include "monitor/metrics_text.hpp"

namespace speedo {

// What a master shows of its job over HTTP:
//   /             a page for people, which asks for the next two
//   /status.json  status_json()
//   /curves.json  CurveHistory::json()
//   /metrics      for Prometheus
//   /healthz      200 as long as the master's event loop goes round, or has not begun
//   /readyz       200 once it takes workers and its store answers, else 503 with the reason
// Thread safety: all methods from any thread.
class JobMonitor {
 public:
  // `clock` outlives it; `process` is called for each /metrics.
  JobMonitor(const Clock& clock, std::function<ProcessFigures()> process)
      : clock_(clock), process_(std::move(process)) {}

  // How the job stands now.
  void take(JobStatus status);
  // Nothing: there is no such page.
  std::optional<HttpAnswer> answer(std::string_view path) const;

 private:
  std::shared_ptr<const JobStatus> latest() const;
  HttpAnswer status_answer() const;
  HttpAnswer health_answer() const;
  HttpAnswer readiness_answer() const;

  const Clock& clock_;
  const std::function<ProcessFigures()> process_;
  mutable std::mutex mutex_;
  std::shared_ptr<const JobStatus> latest_;  // null: the master has not begun
  Instant taken_at_{0};
  CurveHistory curves_;
};

}  // namespace speedo
