#include "train/merge/merger_pool.hpp"

#include <speedo/base/thread_name.hpp>

namespace speedo {

MergerPool::MergerPool(int threads) {
  if (threads < 2) return;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

MergerPool::~MergerPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void MergerPool::post(std::function<void()> task) {
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

void MergerPool::run() {
  name_thread("merger-pool");
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
