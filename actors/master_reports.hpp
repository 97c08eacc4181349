#pragma once

#include <chrono>
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
// own. What they write to may take nothing for a while, and the actor holds up the network.
// Thread safety: all methods from any thread.
class MasterReports {
 public:
  // If so many wait, of the progress after them only the newest is told.
  static constexpr std::size_t kWaitingMax = 4096;

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
  void post(std::function<void()> work);
  void tell_newest();

  void break_off(Error error);

  const MasterHooks& hooks_;
  mutable std::mutex mutex_;
  std::size_t waiting_ = 0;               // guarded by mutex_
  std::optional<MasterProgress> newest_;  // guarded by mutex_: told when nothing else waits
  std::optional<JobStatus> status_;       // guarded by mutex_
  std::optional<Error> broken_;           // guarded by mutex_
  JobThread thread_;                      // last: its work uses the others
};

}  // namespace speedo
