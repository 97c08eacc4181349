#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/train/messages.hpp>

#include "train/session/session_commands.hpp"

namespace speedo {

// Whose states a snapshot waits for, and whose it has. Who fails, goes, or does not answer in time
// is left out of it, and named.
//
// Invariant: a worker is awaited, has saved, or is left out.
// Thread safety: one thread. Times come from the caller.
class StateGathering {
 public:
  // A worker finishes its run before it answers.
  static constexpr std::chrono::seconds kPatience{60};

  // From here on nobody is waited for longer than this, of this snapshot or a later one.
  void hurry(Instant patience) { patience_ = std::min<Instant>(patience_, patience); }
  // Forgets an earlier one.
  void begin(std::uint64_t iteration, std::map<WorkerId, std::string> asked, Instant now);
  bool is_of(std::uint64_t iteration) const { return iteration_ == iteration; }
  // Nobody is awaited any more. False if none was begun.
  bool is_over() const { return iteration_.has_value() && awaited_.empty(); }

  // What is not awaited is ignored.
  void answered(WorkerId worker, const StateSavedMessage& message, SessionCommands& out);
  void gone(WorkerId worker, SessionCommands& out);
  void tick(Instant now, SessionCommands& out);
  // Training ends and can wait for nobody.
  void break_off(SessionCommands& out);

  // In ascending order.
  std::vector<WorkerId> saved() const { return {saved_.begin(), saved_.end()}; }

 private:
  void leave_out(WorkerId worker, const std::string& why, SessionCommands& out);

  std::optional<std::uint64_t> iteration_;
  std::map<WorkerId, std::string> awaited_;  // and their names
  std::set<WorkerId> saved_;
  Instant asked_at_{0}, patience_{kPatience};
};

}  // namespace speedo
