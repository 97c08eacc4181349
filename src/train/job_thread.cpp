#include "train/job_thread.hpp"

#include <utility>

#include <speedo/base/thread_name.hpp>

namespace speedo {

JobThread::JobThread() : thread_([this] { loop(); }) {}

JobThread::~JobThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void JobThread::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void JobThread::loop() {
  name_thread("job");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // What it holds is released without the lock, too.
    lock.lock();
  }
}

}  // namespace speedo
