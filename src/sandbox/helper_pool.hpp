#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "sandbox/helper_process.hpp"
#include "sandbox/helper_starter.hpp"
#include "sandbox/helper_task.hpp"

namespace speedo {

// Of all helpers of a pool so far.
struct HelperTotals {
  std::int64_t started = 0, died = 0;
};

class HelperLoan;

// Helper processes, of which there are as many as were ever in use at once. One that dies is told
// of, counted and replaced; where they die one after the other, each waits longer than the one
// before it.
// Thread safety: any thread. Requires: it outlives its loans.
class HelperPool {
 public:
  explicit HelperPool(HelperOptions options) : options_(std::move(options)) {}
  HelperPool(const HelperPool&) = delete;
  HelperPool& operator=(const HelperPool&) = delete;

  // One that nobody else has. Errors: as HelperProcess::start().
  Result<HelperLoan> take();
  HelperTotals totals() const { return {started_.load(), died_.load()}; }
  // Of those that died, how many there were since somebody asked last.
  std::int64_t take_deaths() { return untaken_deaths_.exchange(0); }

 private:
  friend class HelperLoan;
  Result<std::unique_ptr<HelperProcess>> start();
  void give_back(std::unique_ptr<HelperProcess> helper);
  void note_end(const HelperEnd& end);

  const HelperOptions options_;
  HelperStarter starter_;  // outlives those that it started
  std::atomic<std::int64_t> started_{0}, died_{0}, died_in_row_{0}, untaken_deaths_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<HelperProcess>> idle_;  // guarded by mutex_
};

// A helper for as long as somebody needs the same one, or another in its place if it dies.
// Thread safety: one thread at a time.
class HelperLoan {
 public:
  HelperLoan(HelperLoan&&) = default;
  HelperLoan& operator=(HelperLoan&&) = delete;
  ~HelperLoan();

  // Has the helper do it. If it dies of that, a new one is to do it, after `first` if that is not
  // null; if the third one dies, too, the task is what kills. Errors: kData, kUnsupported: as the
  // helper says, or that it dies; kUnavailable, kNotFound: no other can be started.
  Result<HelperReply> run(const HelperTask& task, const HelperTask* first = nullptr);
  // run() of each, handed over in groups. `take` has the replies one by one, in the tasks' order;
  // each is valid until it returns, and its task's input is needed as long. Each task of a group
  // that a helper dies of is done alone, and that one death is held against none of them.
  using TakeReply = std::function<void(std::size_t index, Result<HelperReply> reply)>;
  void run_all(std::span<const HelperTask> tasks, const TakeReply& take);
  std::size_t window_bytes() const { return window_bytes_; }

 private:
  friend class HelperPool;
  std::size_t run_group(std::span<const HelperTask> group, const TakeReply& take,
                        std::size_t first);
  HelperLoan(HelperPool& pool, std::unique_ptr<HelperProcess> helper)
      : pool_(&pool), helper_(std::move(helper)), window_bytes_(helper_->window_bytes()) {}

  HelperPool* pool_;
  std::unique_ptr<HelperProcess> helper_;  // null: it has died
  std::size_t window_bytes_;
};

}  // namespace speedo
