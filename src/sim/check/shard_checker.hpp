#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "speedo.pb.h"

#include "sim/check/violations.hpp"

namespace speedo::sim {

// What becomes of the shards of the data stream in one master's session: none is given to two, used
// twice or left behind, and of a saved state exactly those are open that were not used. Is told by
// the session checker what happened; finds violations of Check::kOnce.
class ShardChecker {
 public:
  struct Range {
    std::uint64_t first = 0, count = 0;
  };
  struct Deal {
    std::uint64_t worker = 0;
    Range shards;            // of the run that begins
    std::uint64_t next = 0;  // the first shard reserved for the worker's next run
    // Steps of the data stream: where `shards` and `next` begin, and the length of each shard;
    // 0: it is not looked at.
    std::uint64_t step = 0, next_step = 0, steps = 0;
  };

  // Shards below `first` were used before. `one_each`: runs are of one shard, and so it is known
  // which shards are nobody's; they have to be dealt first, the smallest first.
  ShardChecker(std::uint64_t first, bool one_each, Violations& violations);
  // Instead of `first`: what the state says that the session is restored from.
  void go_on_from(const record::Session& state);

  // Runs that begin together.
  void dealt(std::span<const Deal> deals);
  // The worker's run has ended with a report: nothing is decided yet on its shards.
  Range reported(std::uint64_t worker);
  // Merged, rejected, dropped or not finite: in any case gone. Requires: they were reported.
  void used(Range shards);
  // What was made of them is lost: they are nobody's. Requires: the same.
  void lost(Range shards);
  // The same, and the worker has to train them again before others.
  void lost_by(std::uint64_t worker, Range shards) { held_[worker].again = shards; }
  // Shards of another length follow, from `fresh` on: those below that no run was given count as
  // used. Returns them. `cut`: the state that says which shards and pieces have their data now;
  // null: it is not known.
  std::vector<std::uint64_t> given_up(std::uint64_t fresh, const record::Session* cut = nullptr);
  // The worker is gone: what it held is nobody's.
  void gone(std::uint64_t worker);

  // `merging`: counts as used in this state. `discards`: the schedule may have dropped
  // contributions without saying so.
  void check_state(const record::Session& state, std::span<const Range> merging,
                   bool discards) const;

 private:
  struct Held {
    std::optional<Range> current;
    std::optional<std::uint64_t> next;
    std::optional<Range> again;
  };
  void expect(bool holds, const char* otherwise) const {
    violations_.expect(Check::kOnce, holds, otherwise);
  }
  bool is_dealt_again(const Deal& deal);
  void deal(std::uint64_t shard);
  void place(std::uint64_t shard, std::uint64_t step, std::uint64_t steps);
  void free(std::uint64_t shard);
  void mark_used(std::uint64_t shard);
  void check_cut(const std::vector<std::uint64_t>& given_up, const record::Session& cut);
  bool is_used(std::uint64_t shard) const { return shard < used_.size() && used_[shard]; }

  const bool one_each_;
  Violations& violations_;
  std::uint64_t fresh_;               // shards from here on were never dealt
  std::set<std::uint64_t> free_;      // nobody's, though they were dealt once
  std::set<std::uint64_t> taken_;     // of a run, reserved, or reported
  std::map<std::uint64_t, Held> held_;  // by worker
  struct Place {
    std::uint64_t end = 0, shard = 0;
  };
  std::map<std::uint64_t, Place> places_;  // of shards that were dealt, by their first step
  std::map<std::uint64_t, std::uint64_t> left_;  // steps that no shard has, from .. to
  std::vector<bool> used_;            // by shard
  std::size_t used_count_ = 0;
};

}  // namespace speedo::sim
