#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <speedo/base/ids.hpp>

namespace speedo {

// Shards first .. first + count - 1 of the data stream.
struct ShardRange {
  std::uint64_t first = 0, count = 1;
};

// Steps first .. first + count - 1 of the data stream.
struct StepRange {
  std::uint64_t first = 0, count = 0;
  bool operator==(const StepRange&) const = default;
};

// Where shards lie in the data stream, which is counted in steps of a worker: those from `shard` on
// have `steps` each, and the first of them begins at `step`.
struct ShardPlace {
  std::uint64_t shard = 0, step = 0, steps = 1;
};

// What is open of the data before a place: shards below its first, with the step that each begins
// at, and what lies in pieces that are too short for a shard. Both ascend.
struct ShardRemains {
  std::map<std::uint64_t, std::uint64_t> apart;
  std::vector<StepRange> left;
};

// Which shards of the data stream each run trains on. Shards are numbered from 0; a worker holds
// some for its current run and some reserved for its next, so that it can read ahead. What a dead
// worker held is handed out again, smallest first: no shard is skipped because its worker died. The
// others get them with their next reservation, so they are trained a run later than the reserved.
// So are those whose contribution was lost, unless its worker trains them again at once.
// Where runs become longer or shorter, what is open is cut anew: shards of the new length begin
// with the data that the last ones of the old length were not trained on, and what lies apart
// before those, which slower or dead workers left, is free in such shards, as far as it holds whole
// ones. The rest waits for shards that are short enough.
//
// Invariant: a shard is free, held by one worker, reported (its contribution is undecided), or
// used up; once used up it is so for good. The first three together are the open ones.
class ShardLeases {
 public:
  struct Order {
    WorkerId worker;
    std::uint64_t shards = 1;   // wanted; where free ones do not lie side by side it gets fewer
  };
  struct Lease {
    ShardRange current;
    std::uint64_t next = 0;     // the first one reserved
  };

  // More pieces that are too short than this are not remembered, only the last ones.
  static constexpr std::size_t kLeftMax = 4096;

  // Ordinals below `fresh` are used up, but for `open`, which are free. Requires: `fresh` and all
  // of `open` are of the place or apart; place.steps > 0.
  explicit ShardLeases(std::uint64_t fresh, std::set<std::uint64_t> open = {},
                       ShardPlace place = {}, ShardRemains remains = {});

  // From here on shards are of so many steps. If that is another number, what was reserved is so no
  // more, and the shards that were open are used up: their data are those of new ones. Requires: no
  // run is under way, nothing is reported.
  void set_steps(std::uint64_t steps);
  const ShardPlace& place() const { return place_; }
  // What no shard has.
  const std::vector<StepRange>& left() const { return remains_.left; }
  std::uint64_t steps_left() const;
  // The step of the data stream that a shard begins with.
  std::uint64_t step_of(std::uint64_t shard) const;

  // Leases for runs that start together: first everyone's current shards in the order of `orders`,
  // then the reserved ones. So n workers in step use r n .. r n + n - 1 in round r.
  // Requires: none of them holds current shards.
  std::vector<Lease> start_runs(std::span<const Order> orders);

  // The shards of the worker's run. Requires: one is under way.
  ShardRange current(WorkerId worker) const;
  // The worker's run has ended with a report: its shards are reported.
  ShardRange report(WorkerId worker);

  // Reported shards are used up.
  void use_up(ShardRange reported);
  // They come to nothing: they are free again.
  void free_reported(ShardRange reported);
  // The worker trains them again; what it has reserved stays so. Requires: they were its last.
  Lease train_again(WorkerId worker, ShardRange reported);

  // Whether shards that the worker began are open: its run is under way, or nothing is decided yet
  // on what it reported.
  bool has_begun_open(WorkerId worker) const;

  // The worker is gone: what it holds is free again. Not an error: it holds nothing.
  void give_back(WorkerId worker);

  std::uint64_t fresh() const { return fresh_; }
  // Ascending, apart from those in `without`, which are open. Called for every merge.
  std::vector<std::uint64_t> open(std::span<const ShardRange> without) const;

 private:
  struct Held {
    std::optional<ShardRange> current, next;
  };
  ShardRange take(std::uint64_t shards);
  std::vector<StepRange> open_steps() const;
  void cut(StepRange range, std::uint64_t steps);

  std::map<WorkerId, Held> held_;
  std::set<std::uint64_t> free_;
  std::map<std::uint64_t, WorkerId> reported_;  // by whom
  std::uint64_t fresh_;
  ShardPlace place_;
  ShardRemains remains_;
  std::vector<std::uint64_t> open_;  // ascending; new ones join at the end
};

}  // namespace speedo
