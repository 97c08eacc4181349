#include <speedo/base/pause.hpp>

namespace speedo {

bool RealPause::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return ended_; });
}

void RealPause::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace speedo
