#include "local/parted_work.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "base/log.hpp"
#include "cli/exit_code.hpp"
#include "local/local_cluster.hpp"
#include "local/remote_host.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kEndPatience{100};
constexpr std::int64_t kPartsAheadPerWorker = 3;

std::string batches_text(const WorkPart& part) {
  return fmt::format("batches {} to {}", part.first, part.first + part.count - 1);
}

// Another try may succeed where the machine, the connection or the process was lost.
bool another_try_can_help(const ChildEnd& end) {
  if (end.signal != 0 || end.exit_code > 128) return true;
  return end.exit_code == kSshFailed || end.exit_code == exit_code(ErrorCode::kUnavailable);
}

class PartedRun {
 public:
  PartedRun(const PartedWork& work, Children& children)
      : work_(work), children_(children), failures_(work.workers.size()) {
    SPEEDO_ASSERT(!work.workers.empty() && work.pieces > 0 && work.pieces_a_part > 0);
    for (std::size_t i = 0; i < work.workers.size(); ++i) idle_.insert(i);
    part_count_ = (work.pieces + work.pieces_a_part - 1) / work.pieces_a_part;
  }

  Result<void> run() {
    while (taken_ < part_count_) {
      if (work_.stopped && work_.stopped()) {
        return Error{ErrorCode::kUnavailable, "stopped before the last batch"};
      }
      SPEEDO_TRY(give_out());
      if (const auto end = children_.wait(kEndPatience)) SPEEDO_TRY(note_end(*end));
      SPEEDO_TRY(take_in_order());
    }
    return {};
  }

 private:
  struct Job {
    std::size_t worker = 0;
    std::int64_t part = 0;
  };

  WorkPart part_at(std::int64_t number) const {
    const std::int64_t first = number * work_.pieces_a_part;
    return {first, std::min(work_.pieces_a_part, work_.pieces - first)};
  }
  fs::path made_by(std::int64_t part) const {
    return work_.folder / fmt::format("part{}.made", part);
  }
  fs::path said_by(std::size_t worker) const {
    return work_.folder / fmt::format("worker{}.log", worker);
  }

  // The next part that a worker may have; -1 for none now.
  std::int64_t next_part() {
    if (!again_.empty()) return again_.extract(again_.begin()).value();
    const auto ahead = kPartsAheadPerWorker * static_cast<std::int64_t>(work_.workers.size());
    if (given_ >= part_count_ || given_ >= taken_ + ahead) return -1;
    return given_++;
  }

  Result<void> give_out() {
    while (!idle_.empty()) {
      const std::int64_t part = next_part();
      if (part < 0) return {};
      const std::size_t worker = *idle_.begin();
      ChildCommand command = work_.workers[worker].command(part_at(part));
      command.result = made_by(part);
      command.output = said_by(worker);
      SPEEDO_ASSIGN(const pid_t pid, children_.start(command));
      idle_.erase(worker);
      running_[pid] = {worker, part};
    }
    if (!running_.empty()) return {};
    return Error{ErrorCode::kUnavailable, "no worker is left: " + last_failure_};
  }

  Result<void> note_end(const ChildEnd& end) {
    const auto found = running_.find(end.pid);
    if (found == running_.end()) return {};
    const Job job = found->second;
    running_.erase(found);
    if (end.exit_code == 0) {
      failures_[job.worker] = 0;
      idle_.insert(job.worker);
      done_.insert(job.part);
      return {};
    }
    const std::string& name = work_.workers[job.worker].name;
    const std::string said = last_line(said_by(job.worker));
    if (!another_try_can_help(end)) {
      return Error{error_code_of_exit(end.exit_code),
                   fmt::format("{}, {}: {}", name, batches_text(part_at(job.part)),
                               said.empty() ? to_string(end) : said)};
    }
    last_failure_ =
        fmt::format("{} ended with {}{}", name, to_string(end), said.empty() ? "" : ": " + said);
    if (++failures_[job.worker] < kWorkerFailuresMax) idle_.insert(job.worker);
    return do_again(job.part, last_failure_);
  }

  Result<void> do_again(std::int64_t part, const std::string& why) {
    SPEEDO_WARN("{}; {} are given out again", why, batches_text(part_at(part)));
    if (++attempts_[part] < kPartAttemptsMax) {
      again_.insert(part);
      return {};
    }
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("{} failed {} times: {}", batches_text(part_at(part)), kPartAttemptsMax, why)};
  }

  Result<void> take_in_order() {
    while (done_.contains(taken_)) {
      done_.erase(taken_);
      auto taken = work_.take(part_at(taken_), made_by(taken_));
      if (!taken && taken.error().code == ErrorCode::kCorrupt) {
        return do_again(taken_, taken.error().message);
      }
      SPEEDO_TRY(std::move(taken));
      std::error_code ignored;
      fs::remove(made_by(taken_), ignored);
      ++taken_;
    }
    return {};
  }

  const PartedWork& work_;
  Children& children_;
  std::int64_t part_count_ = 0, given_ = 0, taken_ = 0;
  std::set<std::size_t> idle_;  // workers
  std::vector<int> failures_;   // of workers, in a row
  std::map<pid_t, Job> running_;
  std::set<std::int64_t> again_, done_;  // parts
  std::map<std::int64_t, int> attempts_;
  std::string last_failure_;
};

}  // namespace

Result<void> do_parted_work(const PartedWork& work, Children& children) {
  return PartedRun(work, children).run();
}

}  // namespace speedo
