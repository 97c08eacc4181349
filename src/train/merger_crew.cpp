#include "train/merger_crew.hpp"

#include <speedo/base/thread_name.hpp>

namespace speedo {

MergerCrew::MergerCrew(int threads) {
  if (threads < 2) return;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

MergerCrew::~MergerCrew() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void MergerCrew::post(std::function<void()> task) {
  if (threads_.empty()) {
    task();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void MergerCrew::run() {
  name_thread("merger-crew");
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace speedo
