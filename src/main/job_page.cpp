#include "main/job_page.hpp"

#include <chrono>
#include <string_view>
#include <utility>

#include <sys/resource.h>

#include <speedo/base/clock.hpp>
#include <speedo/store/redis_errors.hpp>

#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "cli/options/option_parser.hpp"

namespace speedo {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double processor_seconds_used() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ProcessFigures process_figures(double start_seconds) {
  ProcessFigures figures;
  figures.version = version().substr(version().find(' ') + 1);
  for (const RedisErrorCount& each : redis_error_counts()) {
    figures.redis_errors.push_back({std::string(each.kind), each.count});
  }
  figures.resident_bytes = resident_bytes();
  figures.cpu_seconds = processor_seconds_used();
  figures.start_seconds = start_seconds;
  return figures;
}

}  // namespace

JobPage::JobPage()
    : monitor_(steady_clock(),
               [start = seconds_since_1970()] { return process_figures(start); }) {}

Result<std::unique_ptr<JobPage>> JobPage::open(const std::string& metrics_addr) {
  if (metrics_addr.empty()) return std::unique_ptr<JobPage>();
  SPEEDO_ASSIGN(const HttpAddress address, parse_http_address(metrics_addr));
  std::unique_ptr<JobPage> page(new JobPage);
  const auto answer = [monitor = &page->monitor_](std::string_view path) {
    return monitor->answer(path);
  };
  SPEEDO_ASSIGN(page->server_, HttpServer::start(address, answer));
  SPEEDO_INFO("Look at the job at {}/", page->server_->url());
  return page;
}

}  // namespace speedo
