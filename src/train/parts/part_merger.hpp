#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/platform.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/train/merger.hpp>

#include "caffe.pb.h"
#include "train/job/job_thread.hpp"
#include "train/merge/merger_engine.hpp"
#include "train/parts/clipped_store.hpp"
#include "train/parts/neighbor_copies.hpp"
#include "train/parts/part_clip.hpp"
#include "train/parts/part_orders.hpp"
#include "train/parts/part_setup.hpp"
#include "train/parts/step_part.hpp"

namespace speedo {

// Merges one part of the weights, or of replicated updates' steps, by orders and on a thread of its
// own. What an order has made of weights counts once the decision on it has come. Every second it
// looks whether its server still has its part of them, and puts it there again if not.
// Thread safety: take() from any thread; the sink is called on the merger's own.
class PartMerger {
 public:
  PartMerger(PartSetup setup, PartSink sink);
  // Whoever waits for a decision is told that there is none.
  ~PartMerger();
  // Returns at once.
  void take(PartOrder order);

 private:
  void decide(const part_order::Decide& decision);
  Result<void> wait_for_decision(std::uint64_t id);
  bool is_ending();
  Instant idle();
  void do_order(const part_order::Open& order);
  void do_order(const part_order::Merge& order);
  void do_order(const part_order::Expect& order);
  void do_order(const part_order::Copy& order);
  void do_order(const part_order::Close& order);
  void do_order(const part_order::Decide& /*decided where it came in*/) {}
  Result<void> open(const part_order::Open& order);
  void remove_what_nobody_names();
  struct PartCheckpoint {
    Version version;
    std::vector<float> values;  // the part's weights, and its histories
  };
  Result<PartCheckpoint> read_checkpoint(const std::string& key);
  Result<std::optional<PartCheckpoint>> newest_checkpoint();
  Result<std::vector<std::vector<float>>> histories_in(const PartCheckpoint& checkpoint) const;
  Result<void> merge(const part_order::Merge& order);
  // While the order is under way, what is put is answered, and counts if it is decided so.
  void await_vote(std::uint64_t id);
  void end_vote(std::uint64_t id, const Result<void>& done);

  const PartSetup setup_;
  const PartSink sink_;
  Platform& platform_;
  const std::unique_ptr<Monitor> monitor_;
  // Guarded by monitor_: by order, whether it counts; none of those before the one under way.
  std::map<std::uint64_t, bool> decided_;
  bool ending_ = false;  // guarded by monitor_
  // The rest: of the thread.
  std::unique_ptr<NeighborCopies> copies_;  // null: none
  std::unique_ptr<ClippedStore> store_;
  std::uint32_t first_slot_ = 0;  // of those that are this merger's alone
  std::unique_ptr<MergerEngine> engine_;  // null until it was opened
  std::unique_ptr<StepPart> steps_;       // in its place, of replicated updates
  Version version_;
  bool answered_ = false;   // the order under way
  bool undecided_ = false;  // the same: whether it counts is not known here
  Instant looked_at_{0}, expected_at_{0};
  JobThread thread_;  // last: it uses the others
};

}  // namespace speedo
