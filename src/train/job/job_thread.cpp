#include "train/job/job_thread.hpp"

#include <mutex>
#include <utility>

namespace speedo {
JobThread::JobThread(Platform& platform, const char* name, std::function<Instant()> idle)
    : clock_(platform.clock()),
      idle_(std::move(idle)),
      monitor_(platform.make_monitor()),
      thread_(platform.start_thread(name, [this] { loop(); })) {}

JobThread::~JobThread() {
  {
    const std::lock_guard lock(*monitor_);
    ending_ = closed_ = true;
    monitor_->notify_all();
  }
  thread_.reset();
}

void JobThread::post(std::function<void()> work) {
  const std::lock_guard lock(*monitor_);
  queue_.push_back(std::move(work));
  monitor_->notify_all();
}

void JobThread::end() {
  const std::lock_guard lock(*monitor_);
  ending_ = true;
}

bool JobThread::is_ending() {
  const std::lock_guard lock(*monitor_);
  return ending_;
}

bool JobThread::has_work() {
  const std::lock_guard lock(*monitor_);
  return !queue_.empty();
}

// The next piece of work; nothing at the end, or if there is none for so long.
std::function<void()> JobThread::next(Instant patience) {
  const std::lock_guard lock(*monitor_);
  const auto is_due = [this] { return closed_ || !queue_.empty(); };
  if (idle_) {
    if (patience > Instant{0}) monitor_->wait_for(clock_, patience, is_due);
  } else {
    while (!is_due()) monitor_->wait();
  }
  if (queue_.empty()) return nullptr;
  std::function<void()> work = std::move(queue_.front());
  queue_.pop_front();
  return work;
}

bool JobThread::is_over() {
  const std::lock_guard lock(*monitor_);
  return closed_ && queue_.empty();
}

void JobThread::loop() {
  Instant patience{0};
  while (!is_over()) {
    if (const std::function<void()> work = next(patience)) {
      work();
      patience = Instant{0};
    } else if (idle_ && !is_over()) {
      patience = idle_();
    }
  }
}

}  // namespace speedo
