#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/train/merger.hpp>

namespace speedo::sim {

// What becomes of a master's merges, as whoever holds it to them must know before its session does.
// Called on the merger's thread.
struct MergeWatch {
  // A merge, or without a job the entering of a stage, is about to begin.
  std::function<void(const MergeJob* job)> on_begin = {};
  std::function<void(const MergeJob&, const MergeResult&, const Merger::Copy&)>
      on_merged = {};
  std::function<void(const Merger::Copy&)> on_stage = {};
  // It failed, perhaps after it was published.
  std::function<void()> on_failed = {};
};

// The real merger, watched: answers wait for the copy that is taken right after them.
class WatchedMerger : public Merger {
 public:
  WatchedMerger(std::unique_ptr<Merger> merger, MergeWatch watch)
      : watch_(std::move(watch)), merger_(std::move(merger)) {}

  void merge(MergeJob job,
             std::function<void(Result<MergeResult>)> done) override;
  void expect(MergeJob job) override { merger_->expect(std::move(job)); }
  void enter_stage(std::uint32_t stage, std::string state,
                   std::function<void(Result<Version>)> done) override;
  void copy(std::function<void(Result<Copy>)> done) override { merger_->copy(std::move(done)); }
  std::optional<Error> waits_because() override { return merger_->waits_because(); }
  void stop_waiting() override { merger_->stop_waiting(); }

 private:
  const MergeWatch watch_;
  const std::unique_ptr<Merger> merger_;  // last: its thread uses the watch
};

}  // namespace speedo::sim
