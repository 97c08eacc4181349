#pragma once

#include <deque>
#include <functional>
#include <memory>

#include <speedo/base/platform.hpp>

namespace speedo {

// A thread that does one piece of work after another, in the order of post(). While there is none
// it calls `idle`: at once, and again after as long as that says. What was posted is always done:
// the destructor waits for it.
// Thread safety: all methods from any thread.
class JobThread {
 public:
  // `name`: at most 15 characters. `idle` may be empty.
  JobThread(Platform& platform, const char* name, std::function<Instant()> idle = {});
  ~JobThread();
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  void post(std::function<void()> work);
  // From now on work learns by is_ending() that it should be short.
  void end();
  bool is_ending();
  bool has_work();  // apart from what is being done

 private:
  std::function<void()> next(Instant patience);
  bool is_over();
  void loop();

  const Clock& clock_;
  const std::function<Instant()> idle_;
  const std::unique_ptr<Monitor> monitor_;
  std::deque<std::function<void()>> queue_;  // guarded by monitor_
  bool ending_ = false;                      // guarded by monitor_
  bool closed_ = false;                      // guarded by monitor_: nothing is posted any more
  std::unique_ptr<Thread> thread_;           // last: it uses the others
};

}  // namespace speedo
