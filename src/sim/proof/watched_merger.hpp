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

// The real merger, of which a watcher changes merges and stages alone.
class ThroughMerger : public Merger {
 public:
  explicit ThroughMerger(std::unique_ptr<Merger> merger) : merger_(std::move(merger)) {}
  void expect(MergeJob job) override { merger_->expect(std::move(job)); }
  void copy(std::function<void(Result<Copy>)> done) override { merger_->copy(std::move(done)); }
  std::optional<Error> waits_because() override { return merger_->waits_because(); }
  void stop_waiting() override { merger_->stop_waiting(); }

 protected:
  // Whoever watches ends it first: its thread uses the watch.
  std::unique_ptr<Merger> merger_;
};

// The real merger, watched: answers wait for the copy that is taken right after them.
class WatchedMerger : public ThroughMerger {
 public:
  WatchedMerger(std::unique_ptr<Merger> merger, MergeWatch watch)
      : ThroughMerger(std::move(merger)), watch_(std::move(watch)) {}
  ~WatchedMerger() override { merger_.reset(); }

  void merge(MergeJob job,
             std::function<void(Result<MergeResult>)> done) override;
  void enter_stage(std::uint32_t stage, std::string state,
                   std::function<void(Result<Version>)> done) override;

 private:
  const MergeWatch watch_;
};

}  // namespace speedo::sim
