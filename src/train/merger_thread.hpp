#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace speedo {

// A thread that does jobs in order, and `idle` once a second while there are none.
// Thread safety: post() from any thread.
class MergerThread {
 public:
  // A job learns whether the thread is being stopped: then it should end quickly.
  using Job = std::function<void(bool stopping)>;

  MergerThread() = default;
  ~MergerThread() { stop(); }
  MergerThread(const MergerThread&) = delete;
  MergerThread& operator=(const MergerThread&) = delete;

  void start(std::function<void()> idle);
  void stop();  // after every job that was posted
  void post(Job job);
  bool is_idle();  // nothing waits to be done

 private:
  void run();
  std::function<void()> idle_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace speedo
