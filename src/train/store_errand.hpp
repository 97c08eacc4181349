#pragma once

#include <functional>
#include <memory>

#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>

#include "base/answer.hpp"
#include "train/job/job_thread.hpp"

namespace speedo {

// What is asked of the store on a thread of its own, so that nobody waits for a store that is away.
// Thread safety: one thread at a time.
class StoreErrand {
 public:
  explicit StoreErrand(Platform& platform) : platform_(platform) {}

  // `errand` uses its store, and what it names, until finish() or the destructor, which waits for
  // it. Requires: none is under way.
  void begin(std::function<Result<void>()> errand);
  bool is_under_way() const { return answer_ != nullptr; }
  // Whether finish() would not wait.
  bool is_done() const;
  // What came of it. Requires: one is under way.
  Result<void> finish();

 private:
  Platform& platform_;
  std::unique_ptr<Answer<Result<void>>> answer_;  // null: none is under way
  std::unique_ptr<JobThread> thread_;  // from the first on; last: it uses the answer
};

}  // namespace speedo
