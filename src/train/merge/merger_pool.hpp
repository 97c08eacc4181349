#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace speedo {

// Threads that do small pieces of arithmetic while the merger's own thread waits for the store.
// Thread safety: post() from one thread.
class MergerPool {
 public:
  // With fewer than two threads post() does the work itself.
  explicit MergerPool(int threads);
  ~MergerPool();  // waits for what was posted
  MergerPool(const MergerPool&) = delete;
  MergerPool& operator=(const MergerPool&) = delete;

  void post(std::function<void()> task);

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace speedo
