#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/train/merger.hpp>

#include "sim/proof/watched_merger.hpp"

namespace speedo::sim {

// As MergeWatch, of merges by parts. What they came to is in the store and nowhere else as a whole,
// so that it is to be looked for there.
struct PartsWatch {
  std::function<void(const MergeJob* job)> on_begin = {};
  std::function<void(const MergeJob&, const MergeResult&)> on_merged = {};
  std::function<void(Version)> on_stage = {};
  std::function<void()> on_failed = {};
};

// The real merger by parts, watched. A copy would ask every part: the beginning of what is ordered
// is told by the end of what was ordered before.
class WatchedParts : public ThroughMerger {
 public:
  WatchedParts(std::unique_ptr<Merger> merger, PartsWatch watch)
      : ThroughMerger(std::move(merger)), watch_(std::move(watch)) {}
  ~WatchedParts() override { merger_.reset(); }

  void merge(MergeJob job, std::function<void(Result<MergeResult>)> done) override;
  void enter_stage(std::uint32_t stage, std::string state,
                   std::function<void(Result<Version>)> done) override;

 private:
  // Null: the entering of a stage.
  using Order = std::shared_ptr<const MergeJob>;
  void ordered(Order order);
  void ended();

  const PartsWatch watch_;
  std::deque<Order> orders_;  // not done yet
};

}  // namespace speedo::sim
