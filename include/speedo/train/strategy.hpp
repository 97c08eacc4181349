#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>
#include <speedo/train/update.hpp>

namespace speedo {

// What happened. A strategy sees nothing else.
struct Joined {                // ready for work, in this order; several when training begins
  std::vector<WorkerId> workers;
  // Of the same workers, "host/pid/k"; may be left out.
  std::vector<std::string> names = {};
};
struct Left {
  WorkerId worker;
};
struct Trained {
  WorkerId worker;
  RunId run;
  float loss = 0.0F;           // finite: the session keeps other reports away from strategies
  Version base;                // weights the run started from
  std::uint64_t samples = 0;
  std::uint64_t duration_us = 0;  // of the run, as the worker measured it: compute and exchange
};
struct Failed {                // the run ended without a contribution that may be merged
  WorkerId worker;
  RunId run;
};
using Event = std::variant<Joined, Left, Trained, Failed>;

// What to do, in order. The session turns these into merges and messages: a Train that follows a
// Merge or an Average is sent only when that is done.
struct Merge {                 // merge this worker's last contribution
  WorkerId worker;
  float weight = 1.0F;         // staleness weighting
};
struct Average {               // merge the mean of these workers' last contributions, one iteration
  std::vector<WorkerId> workers;
};
struct Discard {               // drop this worker's last contribution
  WorkerId worker;
};
struct Train {                 // start this worker's next run from the newest weights
  WorkerId worker;
};
using Command = std::variant<Merge, Average, Discard, Train>;
using Commands = std::vector<Command>;

// When contributions are merged and who trains next: one schedule of SpeeDO as a pure state
// machine. Same events in the same order give the same commands: no clock, no randomness, no I/O.
// Requires of callers: Joined names at least one worker, each once per incarnation and before its
// other events; Left at most once, after it nothing of that worker; Trained or Failed only for a
// worker that was told to Train and has not reported since. A contribution outlives its worker: it
// lies in the store whole, so it may be merged after Left.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual Commands on(const Event& event) = 0;
  // What outlives the workers, as text: under a new master all of them join anew. Empty if nothing
  // does. restore() comes before the first event. Error: kCorrupt, nothing changed.
  virtual std::string save() const { return {}; }
  virtual Result<void> restore(std::string_view state);
};

// The parameters of every schedule; each reads what is its own.
struct StrategyOptions {
  std::string name = "async";        // as in strategy_registry()
  std::uint64_t max_advance = 0;     // partial-sync: catch-up when the lead reaches it; >= 1
  std::uint64_t staleness = 0;       // ssp: runs that a worker may lead the slowest by
  std::uint64_t window = 0;          // weedout: the ring holds at least so many reporters; >= 1
  // grouping: names of workers or of hosts, a group each; empty: measured.
  std::vector<std::vector<std::string>> groups = {};
  std::uint64_t group_count = 0;     // grouping, measured: so many groups; 0: as the speeds suggest
  std::uint64_t regroup_interval = 0;  // grouping, measured: reports between measurements; 0: once
  // What has rounds: runs of each round, done by whoever is there; 0: one of each live worker.
  std::uint64_t exact_workers = 0;
};

// One line per known schedule.
struct StrategyEntry {
  const char* name;
  const char* summary;
  std::unique_ptr<Strategy> (*make)(const StrategyOptions& options);
  bool rounds;           // merges means of rounds: an iteration uses one run of every worker
  UpdateSpec update;     // what the name stands for beside the schedule
  // Of its own parameters, or null. Error: kUsage, naming the flag and its range.
  Result<void> (*check)(const StrategyOptions& options) = nullptr;
};
const std::vector<StrategyEntry>& strategy_registry();
// The entry of a name (or of an alias of it), or null.
const StrategyEntry* find_strategy(std::string_view name);
// Errors: kUsage for an unknown name (listing the known ones) or a parameter out of range.
Result<std::unique_ptr<Strategy>> make_strategy(const StrategyOptions& options);

}  // namespace speedo
