#pragma once

#include <deque>
#include <functional>
#include <memory>

#include <speedo/base/platform.hpp>

namespace speedo {

// A thread that does one piece of work after another, in the order of post(), and `idle` once a
// second while there is none. What was posted is always done: the destructor waits for it.
// Thread safety: all methods from any thread.
class JobThread {
 public:
  // `name`: at most 15 characters. `idle` may be empty.
  JobThread(Platform& platform, const char* name, std::function<void()> idle = {});
  ~JobThread();
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  void post(std::function<void()> work);
  // From now on work learns by is_ending() that it should be short.
  void end();
  bool is_ending();
  bool has_work();  // apart from what is being done

 private:
  std::function<void()> next();
  void loop();

  const Clock& clock_;
  const std::function<void()> idle_;
  const std::unique_ptr<Monitor> monitor_;
  std::deque<std::function<void()>> queue_;  // guarded by monitor_
  bool ending_ = false;                      // guarded by monitor_
  bool closed_ = false;                      // guarded by monitor_: nothing is posted any more
  std::unique_ptr<Thread> thread_;           // last: it uses the others
};

}  // namespace speedo
