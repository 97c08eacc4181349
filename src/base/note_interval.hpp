#pragma once

#include <optional>
#include <utility>

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

namespace speedo {

// When the log is to say that something goes on: at once, then every kWaitingNoteInterval.
// Thread safety: one thread. Times come from the caller, and never go back.
class NoteInterval {
 public:
  // Whether to say so now.
  bool is_due(Instant now) {
    if (noted_ && now - *noted_ < kWaitingNoteInterval) return false;
    noted_ = now;
    return true;
  }
  // It is over: the next time is said at once. Whether this one had been said.
  bool end() { return std::exchange(noted_, std::nullopt).has_value(); }

 private:
  std::optional<Instant> noted_;
};

}  // namespace speedo
