#pragma once

#include <functional>
#include <memory>
#include <string>

#include <speedo/base/clock.hpp>
#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>
#include <speedo/train/merger.hpp>

namespace speedo {

// What a merger's thread drives. It blocks, and does nothing that it is not told to.
// Thread safety: one thread at a time.
class MergerWork {
 public:
  virtual ~MergerWork() = default;
  virtual Result<MergeResult> merge(const MergeJob& job) = 0;
  // A merge that is likely to come, without its id and state; replaces the one expected before.
  virtual void expect(const MergeJob& job) = 0;
  virtual bool expects() const = 0;
  // Merges what is there of the expected merge, and a little at a time; false if nothing is.
  virtual bool merge_ahead() = 0;
  // After each merge, once its result is known to others: writes the checkpoint that is due. One
  // that may go on while the next merge works is finished after that merge; where a store that is
  // away is not to hold up merges, each goes on until publish_behind() finds it done.
  virtual void write_checkpoint(bool may_go_on) = 0;
  // Weights that are only in shared memory go to the store when that is due, beside other work;
  // returns when to ask again.
  virtual Instant publish_behind() = 0;
  // At the end: what the store lacks of the last merge, due or not.
  virtual void close() = 0;
  virtual Result<Version> enter_stage(std::uint32_t stage, const std::string& state) = 0;
  virtual Result<Merger::Copy> take_copy() = 0;
  // Publishes again if the store has lost the weights. Says so in the log. Error: they are lost for
  // good; not of a store that is away.
  virtual Result<void> restore_lost_weights() = 0;
};

// A merger whose work is made, done and destroyed on a thread of its own: some devices belong to
// the thread that opens them. Errors: those of `make`.
Result<std::unique_ptr<Merger>> make_merger_thread(
    Platform& platform, const std::function<Result<std::unique_ptr<MergerWork>>()>& make);

}  // namespace speedo
