#include "train/session/rate_window.hpp"

#include <algorithm>
#include <chrono>

namespace speedo {
namespace {

constexpr Instant kWindow = std::chrono::seconds(10);
constexpr Instant kStepMin = std::chrono::milliseconds(500);  // nearer ones count as one

double seconds(Instant time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void RateWindow::add(Instant now, std::uint64_t count) {
  const std::uint64_t total = (steps_.empty() ? 0 : steps_.back().total) + count;
  if (steps_.size() > 1 && now - steps_[steps_.size() - 2].at < kStepMin) {
    steps_.back() = {now, total};
  } else {
    steps_.push_back({now, total});
  }
  while (steps_.size() > 2 && now - steps_.front().at > kWindow) steps_.pop_front();
}

double RateWindow::per_second(Instant now) const {
  if (steps_.size() < 2) return 0.0;
  const Instant span = steps_.back().at - steps_.front().at;
  const Instant usual = span / static_cast<Instant::rep>(steps_.size() - 1);
  const Instant overdue = std::max(now - steps_.back().at - 2 * usual, Instant{0});
  if (overdue > kWindow) return 0.0;
  const double time = seconds(span + overdue);
  if (time <= 0.0) return 0.0;
  return static_cast<double>(steps_.back().total - steps_.front().total) / time;
}

}  // namespace speedo
