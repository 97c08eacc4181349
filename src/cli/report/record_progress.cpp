#include "cli/report/record_progress.hpp"

#include "base/log.hpp"
#include "cli/report/console.hpp"
#include "cli/report/live_status.hpp"

namespace speedo {

void RecordProgress::update(std::int64_t done) {
  const Instant now = steady_clock().now();
  if (!has_live_line() || now - shown_at_ < kLiveInterval) return;
  shown_at_ = now;
  const double percent =
      total_ == 0 ? 100.0 : 100.0 * static_cast<double>(done) / static_cast<double>(total_);
  show_live_line(fmt::format("{} of {} records ({:.0f} %)", done, total_, percent));
}

void RecordProgress::finish() { clear_live_line(); }

}  // namespace speedo
