#include <speedo/base/pause.hpp>

#include <mutex>

namespace speedo {

RealPause::RealPause(Platform& platform)
    : clock_(platform.clock()), monitor_(platform.make_monitor()) {}

bool RealPause::wait(std::chrono::milliseconds time) {
  const std::lock_guard lock(*monitor_);
  return !monitor_->wait_for(clock_, time, [this] { return ended_; });
}

void RealPause::end() {
  const std::lock_guard lock(*monitor_);
  ended_ = true;
  monitor_->notify_all();
}

}  // namespace speedo
