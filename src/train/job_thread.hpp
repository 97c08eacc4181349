#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace speedo {

// A thread that does one piece of work after another, in the order of post(). What was posted is
// always done: the destructor waits for it.
// Thread safety: post() from any thread.
class JobThread {
 public:
  JobThread();
  ~JobThread();
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  void post(std::function<void()> work);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace speedo
