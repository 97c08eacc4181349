#pragma once

#include <cstdint>
#include <functional>

#include <speedo/base/digest.hpp>
#include <speedo/train/worker_session.hpp>

namespace speedo {

// What a worker does outside its actor. Nothing here waits; each `done` is called once, in the
// order of the calls, on a thread of the work's own, and must be quick. Thread safety: one thread
// at a time.
class WorkerWork {
 public:
  virtual ~WorkerWork() = default;
  // Gets the job from the store and builds its net; gives the net's fingerprint.
  virtual void prepare(const WelcomeMessage& welcome,
                       std::function<void(Result<Digest>)> done) = 0;
  virtual void run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) = 0;
  // See Trainer::save_state(); after the runs ordered before.
  virtual void save_state(const SaveStateMessage& order,
                          std::function<void(Result<void>)> done) = 0;
  // Whether the job is over, as far as the store of the last prepare() knows; see is_job_over().
  virtual void look_for_end(std::uint64_t term, std::function<void(bool)> done) = 0;
  // Runs ordered so far end as soon as possible, with kUnavailable.
  virtual void cancel() = 0;
  // The same, and nobody hears of them: what they have put into the store is erased.
  virtual void withdraw() = 0;
  // Of the run under way: grows as long as it gets on. From any thread.
  virtual std::uint64_t progress() const = 0;
};

}  // namespace speedo
