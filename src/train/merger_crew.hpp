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
class MergerCrew {
 public:
  // With fewer than two threads post() does the work itself.
  explicit MergerCrew(int threads);
  ~MergerCrew();  // waits for what was posted
  MergerCrew(const MergerCrew&) = delete;
  MergerCrew& operator=(const MergerCrew&) = delete;

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
