#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// A master's claim on a job. The holder names one process for good: "host pid start-time".
struct MasterClaim {
  std::string holder;
  std::uint64_t term = 0;          // 0: a new one, above all before and not below `term_floor`
  std::uint64_t term_floor = 0;
  std::chrono::milliseconds time{0};  // from now on, unless renewed
  bool force = false;               // although another holder's time is not over
  std::string dead_holder;          // not empty: this holder's time is over, whatever is left of it
};
struct ClaimAnswer {
  bool granted = false;
  std::uint64_t term = 0;          // granted: the claim's; else the holder's
  std::string holder;               // not granted: who has it
  std::chrono::milliseconds left{0};  // and for how long
};

// Who is master of one job: one at a time. Errors and thread safety as of the ParameterStore that
// this is part of.
class MasterStore {
 public:
  virtual ~MasterStore() = default;

  // In one atomic step: granted if nobody holds the job, its holder's time is over, the holder is
  // the same, or by force. Claiming again with the term that was granted renews. A store that was
  // emptied forgets; the highest term that claims or writes again counts.
  // After an error the same claim may be made again. Errors: kSuperseded if a higher term than the
  // claim's was granted meanwhile; kCorrupt if something else lies where the term should.
  virtual Result<ClaimAnswer> claim_master(const MasterClaim& claim) = 0;
  // Gives it up, if still held. The term stays known.
  virtual Result<void> release_master(const MasterClaim& claim) = 0;
};

}  // namespace speedo
