#include "monitor/job_monitor.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "monitor/page.hpp"
#include "monitor/status_json.hpp"

namespace speedo {
namespace {

// An event loop that is silent for so long is taken to hang: it shows itself every second.
constexpr Instant kSilenceMax = std::chrono::seconds(15);

constexpr const char* kJson = "application/json";
constexpr const char* kText = "text/plain; charset=utf-8";

HttpAnswer not_now(const std::string& why) { return {503, kText, why + "\n"}; }

}  // namespace

void JobMonitor::take(JobStatus status) {
  auto taken = std::make_shared<const JobStatus>(std::move(status));
  const std::lock_guard lock(mutex_);
  curves_.add(*taken);
  latest_ = std::move(taken);
  taken_at_ = clock_.now();
}

std::shared_ptr<const JobStatus> JobMonitor::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

std::optional<HttpAnswer> JobMonitor::answer(std::string_view path) const {
  if (path == "/") return HttpAnswer{200, "text/html; charset=utf-8", kMonitorPage};
  if (path == "/status.json") return status_answer();
  if (path == "/healthz") return health_answer();
  if (path == "/readyz") return readiness_answer();
  if (path == "/metrics") {
    return HttpAnswer{200, "text/plain; version=0.0.4; charset=utf-8",
                      metrics_text(latest().get(), process_())};
  }
  if (path == "/curves.json") {
    const std::lock_guard lock(mutex_);
    return HttpAnswer{200, kJson, curves_.json()};
  }
  return std::nullopt;
}

HttpAnswer JobMonitor::status_answer() const {
  const auto job = latest();
  if (!job) return not_now("the master prepares its job");
  return {200, kJson, status_json(*job) + "\n"};
}

HttpAnswer JobMonitor::health_answer() const {
  const std::lock_guard lock(mutex_);
  if (!latest_) return {200, kText, "the master prepares its job\n"};
  const Instant silence = clock_.now() - taken_at_;
  if (latest_->over || silence < kSilenceMax) return {200, kText, "ok\n"};
  return not_now(fmt::format("the master's event loop has not gone round for {} s",
                             std::chrono::duration_cast<std::chrono::seconds>(silence).count()));
}

HttpAnswer JobMonitor::readiness_answer() const {
  const auto job = latest();
  if (!job) return not_now("the master prepares its job");
  if (job->over) return not_now("the job is over");
  if (job->store_away) return not_now("Redis does not answer");
  return {200, kText, "ok\n"};
}

}  // namespace speedo
