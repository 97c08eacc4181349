#include "sandbox/helper_pool.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.hpp"

namespace speedo {

namespace {

constexpr std::int64_t kToldMax = 10;

// Some may die of bad luck or of one bad record; a row of them must not keep the machine busy with
// starting others.
constexpr std::int64_t kInRowWithoutWait = 4;
constexpr std::chrono::milliseconds kWaitFirst{5}, kWaitMax{250};

std::chrono::milliseconds wait_after(std::int64_t died_in_row) {
  const std::int64_t doublings = std::min<std::int64_t>(died_in_row - kInRowWithoutWait, 8);
  if (doublings < 0) return std::chrono::milliseconds(0);
  return std::min(kWaitFirst * (1 << doublings), kWaitMax);
}

}  // namespace

Result<HelperLoan> HelperPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<HelperProcess> helper = std::move(idle_.back());
      idle_.pop_back();
      return HelperLoan(*this, std::move(helper));
    }
  }
  SPEEDO_ASSIGN(std::unique_ptr<HelperProcess> helper, start());
  return HelperLoan(*this, std::move(helper));
}

Result<std::unique_ptr<HelperProcess>> HelperPool::start() {
  // One may be ended before it has said that it is there.
  constexpr int kStartsMax = 3;
  for (int starts = 1;; ++starts) {
    std::this_thread::sleep_for(wait_after(died_in_row_.load()));
    auto helper = HelperProcess::start(options_, starter_);
    if (helper) ++started_;
    if (helper || starts == kStartsMax) return helper;
  }
}

void HelperPool::give_back(std::unique_ptr<HelperProcess> helper) {
  helper->shrink();
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(helper));
}

void HelperPool::note_end(const HelperEnd& end) {
  ++died_in_row_;
  const std::int64_t died = ++died_;
  ++untaken_deaths_;
  if (died <= kToldMax) {
    SPEEDO_WARN("A parser process ended ({}); another one takes its place", to_string(end));
  }
  if (died == kToldMax) SPEEDO_WARN("Further ends of parser processes are only counted");
}

HelperLoan::~HelperLoan() {
  if (helper_ != nullptr) pool_->give_back(std::move(helper_));
}

void HelperLoan::run_all(std::span<const HelperTask> tasks, const TakeReply& take) {
  std::size_t alone_until = 0;  // those before it are not given to a group
  for (std::size_t done = 0; done < tasks.size();) {
    const std::size_t size = group_size(tasks.subspan(done));
    if (done < alone_until || size == 1 || helper_ == nullptr) {
      take(done, run(tasks[done]));
      ++done;
      continue;
    }
    const std::size_t taken = run_group(tasks.subspan(done, size), take, done);
    done += taken;
    // What comes next may have failed among others, or be what the helper died of.
    if (taken < size) alone_until = helper_ == nullptr ? done + size : done + 1;
  }
}

// How many of its tasks have their replies; `first` is the index of its first one.
std::size_t HelperLoan::run_group(std::span<const HelperTask> group, const TakeReply& take,
                                  std::size_t first) {
  GroupOutcome outcome = helper_->run_group(group);
  if (outcome.end) {
    helper_.reset();
    pool_->note_end(*outcome.end);
    return 0;
  }
  pool_->died_in_row_ = 0;
  const std::size_t count = outcome.replies.size();
  for (std::size_t i = 0; i < count; ++i) take(first + i, std::move(outcome.replies[i]));
  if (outcome.lacked_memory) helper_.reset();
  return count;
}

Result<HelperReply> HelperLoan::run(const HelperTask& task, const HelperTask* first) {
  // Ends that the task may be to blame for, and all. A kernel without memory ends helpers, too.
  constexpr int kDeathsMax = 3, kEndsMax = 10;
  int deaths = 0;
  std::optional<HelperEnd> last;
  for (int ends = 0; ends < kEndsMax && deaths < kDeathsMax; ++ends) {
    std::optional<HelperOutcome> outcome;
    if (helper_ == nullptr) {
      SPEEDO_ASSIGN(helper_, pool_->start());
      if (first != nullptr) outcome = helper_->run(*first);
    }
    if (!outcome || outcome->reply) outcome = helper_->run(task);
    if (!outcome->end) {
      pool_->died_in_row_ = 0;
      if (outcome->lacked_memory) helper_.reset();
      return std::move(outcome->reply);
    }
    last = outcome->end;
    helper_.reset();
    pool_->note_end(*last);
    if (!last->untouched) ++deaths;
  }
  return Error{ErrorCode::kData, std::string(task.subject) + " ends the process that reads it (" +
                                     to_string(*last) + "), and others in its place"};
}

}  // namespace speedo
