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

// Where shards lie in the data stream, which is counted in steps of a worker: those from `shard` on
// have `steps` each, and the first of them begins at `step`.
struct ShardPlace {
  std::uint64_t shard = 0, step = 0, steps = 1;
};

// Which shards of the data stream each run trains on. Shards are numbered from 0; a worker holds
// some for its current run and some reserved for its next, so that it can read ahead. What a dead
// worker held is handed out again, smallest first: no shard is skipped because its worker died. The
// others get them with their next reservation, so they are trained a run later than the reserved.
// So are those whose contribution was lost, unless its worker trains them again at once.
// Where runs become longer or shorter, shards of the new length begin with the data that the last
// ones of the old length were not trained on.
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

  // Ordinals below `fresh` are used up, but for `open`, which are free. Requires: `fresh` and all
  // of `open` are of the place; place.steps > 0.
  explicit ShardLeases(std::uint64_t fresh, std::set<std::uint64_t> open = {},
                       ShardPlace place = {});

  // From here on shards are of so many steps. If that is another number, what was reserved is so no
  // more, and what is open is used up: the next shard begins where the last open ones that lie side
  // by side began. So only what a dead worker left, and nobody has begun since, is left out.
  // Requires: no run is under way, nothing is reported.
  void set_steps(std::uint64_t steps);
  const ShardPlace& place() const { return place_; }
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

  std::map<WorkerId, Held> held_;
  std::set<std::uint64_t> free_;
  std::map<std::uint64_t, WorkerId> reported_;  // by whom
  std::uint64_t fresh_;
  ShardPlace place_;
  std::vector<std::uint64_t> open_;  // ascending; new ones join at the end
};

}  // namespace speedo
