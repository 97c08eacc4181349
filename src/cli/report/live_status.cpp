#include "cli/report/live_status.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/log.hpp"

namespace speedo {

namespace {

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kPlain = "\x1b[0m";

// "1 worker", "3 workers".
std::string counted(std::uint64_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

// The parts of the line behind its head, in their order.
enum Part : std::size_t { kState, kSpeed, kImages, kLoss, kWorkers, kTimeLeft, kPartCount };

std::string head_of(const LiveStatus& status) {
  if (status.iteration_max == 0) return fmt::format("iteration {}", status.iteration);
  return fmt::format("iteration {}/{}", status.iteration, status.iteration_max);
}

// Empty where nothing is known.
std::vector<std::string> parts_of(const LiveStatus& status) {
  std::vector<std::string> parts(kPartCount);
  if (status.stages > 1) {
    parts[kState] = fmt::format("  stage {}/{}", status.stage + 1, status.stages);
  }
  if (status.paused) parts[kState] += "  PAUSED for want of workers";
  const double speed = status.paused ? 0.0 : status.iterations_per_second;
  if (speed > 0.0) {
    parts[kSpeed] = fmt::format("  {:.1f} {}/s", speed, status.merges ? "merges" : "iter");
  }
  if (status.images_per_second > 0.0 && !status.paused) {
    parts[kImages] = fmt::format("  {:.0f} images/s", status.images_per_second);
  }
  if (status.loss) parts[kLoss] = fmt::format("  loss {:.4f}", *status.loss);
  if (status.workers) parts[kWorkers] = "  " + counted(*status.workers, "worker");
  if (speed > 0.0 && status.iteration_max > status.iteration) {
    const auto left = static_cast<double>(status.iteration_max - status.iteration);
    parts[kTimeLeft] = "  ETA " + format_duration(left / speed);
  }
  return parts;
}

std::size_t total_size(const std::vector<std::string>& parts) {
  std::size_t size = 0;
  for (const std::string& part : parts) size += part.size();
  return size;
}

}  // namespace

std::string format_duration(double seconds) {
  const auto total = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  const std::int64_t hours = total / 3600;
  const std::int64_t minutes = total / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60);
  return fmt::format("{}:{:02}", minutes, total % 60);
}

std::string format_live_status(const LiveStatus& status, int width, bool colour) {
  // The last column stays free: some terminals wrap when it is written.
  const std::size_t room = static_cast<std::size_t>(std::max(width, 2)) - 1;
  const std::string head = head_of(status).substr(0, room);
  std::vector<std::string> parts = parts_of(status);
  // What the least is lost with goes first.
  for (const std::size_t unimportant : {kImages, kWorkers, kSpeed, kLoss, kTimeLeft, kState}) {
    if (head.size() + total_size(parts) <= room) break;
    parts[unimportant].clear();
  }
  std::string tail;
  for (const std::string& part : parts) tail += part;
  return colour ? kBold + head + kPlain + tail : head + tail;
}

}  // namespace speedo
