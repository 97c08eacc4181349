#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

// What happened. A strategy sees nothing else.
struct Joined {                // ready for work, in this order; several when training begins
  std::vector<WorkerId> workers;
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
// Requires of callers: Joined names at least one worker, each once per life and before its other
// events; Left at most once, after it nothing of that worker; Trained or Failed only for a worker
// that was told to Train and has not reported since.
// A contribution outlives its worker: it lies in the store whole, so it may be merged after Left.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual Commands on(const Event& event) = 0;
  // The state as text, so that a restarted master goes on where the old one was. Error: kCorrupt.
  virtual std::string save() const = 0;
  virtual Result<void> restore(std::string_view state) = 0;
};

// The parameters of every schedule; each reads what is its own.
struct StrategyOptions {
  std::string name = "async";  // as in strategy_registry()
};

// One line per known schedule. `make` is null for one that is not built yet.
struct StrategyEntry {
  const char* name;
  const char* summary;
  std::unique_ptr<Strategy> (*make)(const StrategyOptions& options);
};
const std::vector<StrategyEntry>& strategy_registry();
// Errors: kUsage for an unknown name (listing the known ones), kUnsupported for one not built yet.
Result<std::unique_ptr<Strategy>> make_strategy(const StrategyOptions& options);

}  // namespace speedo
