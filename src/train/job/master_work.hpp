#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/merger.hpp>

#include "train/parts/part_links.hpp"

namespace speedo {

// What the master does outside its actor: merging, testing, writing files, looking after the store.
// Nothing here waits; each `done` is called once, on a thread of the work's own, and must be quick.
// Thread safety: one thread at a time.
class MasterWork {
 public:
  virtual ~MasterWork() = default;
  virtual void merge(master_command::StartMerge job,
                     std::function<void(Result<MergeResult>)> done) = 0;
  // See Merger::expect().
  virtual void expect(master_command::StartMerge job) = 0;
  // Makes ready for a stage and publishes the weights for it, with the session's state.
  virtual void enter_stage(std::uint32_t stage, std::string state,
                           std::function<void(Result<Version>)> done) = 0;
  // Both of these see the weights as of the merges ordered before.
  virtual void test(std::function<void(Result<std::vector<TestScores>>)> done) = 0;
  virtual void snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) = 0;
  // Of a job whose snapshots hold the workers' states: it is written once this is said.
  virtual void finish_snapshot(const master_command::FinishSnapshot& command) = 0;
  // Tests under way or to come end at once, with kUnavailable: a snapshot is all that is wanted
  // now.
  virtual void stop_tests() = 0;
  // Called often; now and then looks whether the store still has the job, and restores it if not.
  // If it looked, `seen` is called; with an error if training cannot go on for now, since the store
  // answers nothing, writes nothing or lets a merge wait, each after its retries.
  virtual void watch(Instant now, std::function<void(Result<void>)> seen) = 0;
  // Removes what this worker has in the store: nothing of it will be read any more. From a store
  // that is away, once it is back.
  virtual void erase_worker(WorkerId worker) = 0;
  // The same of a state at a seat, see src/train/states; what cannot be erased now goes at the end.
  virtual void erase_seat(std::uint64_t seat) = 0;
  // Where mergers of parts that run elsewhere offer themselves, and what they are welcomed with but
  // for the part. Null: the job is not merged in parts.
  struct PartTerms {
    std::shared_ptr<PartDesk> desk;
    std::size_t parts = 0;
    WelcomeMessage welcome;
  };
  virtual const PartTerms* part_terms() const { return nullptr; }
  // Training ends: the store is not waited for, if it is out of reach.
  virtual void stop_waiting() = 0;
};

}  // namespace speedo
