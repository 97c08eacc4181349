#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "train/job/job_thread.hpp"
#include "train/job/master_options.hpp"

namespace speedo {

// Tells a master's hooks, and the log, what its actor has to say: in that order, on a thread of its
// own. What they write to may take nothing for a while, and the actor holds up the network. Nor
// does each report wake the thread: having told some it rests for kRest, and then tells all others.
// Thread safety: all methods from any thread.
class MasterReports {
 public:
  // If so many wait, of the progress after them only the newest is told.
  static constexpr std::size_t kWaitingMax = 4096;
  static constexpr std::chrono::milliseconds kRest{5};

  explicit MasterReports(const MasterHooks& hooks);  // outlive it

  void progress(const MasterProgress& progress, const std::vector<TestScores>* scores);
  void status(JobStatus status);  // an older one that still waits is not told
  void note(bool is_warning, std::string text);
  // Returns once all of before has been told, or after this time.
  void flush_within(std::chrono::milliseconds time);
  // Returns once all of before has been told. Error: kInternal, what a hook has thrown; nothing was
  // told after it.
  Result<void> flush();
  bool are_broken() const;

 private:
  using Report = std::function<void()>;
  void post(Report report);
  // Of the reports' thread: until none waits.
  void tell_all();
  std::vector<Report> next();
  bool tell(const Report& report);  // false: they are broken
  void rest();
  // Of those that flush: there is no rest until all has been told. Then `done` is called.
  void hurry(std::function<void()> done);

  const MasterHooks& hooks_;
  mutable std::mutex mutex_;
  std::condition_variable hurried_;
  std::vector<Report> reports_;           // guarded by mutex_
  std::size_t waiting_ = 0;               // guarded by mutex_: those, and what is being told
  bool is_telling_ = false;               // guarded by mutex_: tell_all() is called, or will be
  bool hurries_ = false;                  // guarded by mutex_
  std::optional<MasterProgress> newest_;  // guarded by mutex_: told when nothing else waits
  std::optional<JobStatus> status_;       // guarded by mutex_
  std::optional<Error> broken_;           // guarded by mutex_
  JobThread thread_;                      // last: its work uses the others
};

}  // namespace speedo
