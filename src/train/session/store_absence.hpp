#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

// A store that is out of reach: since when, what the log is to say of it, and when it is given up.
// Pure: times come from the caller. Thread safety: one thread.
class StoreAbsence {
 public:
  // `patience`: --store-timeout.
  explicit StoreAbsence(std::chrono::seconds patience) : patience_(patience) {}

  bool is_away() const { return since_.has_value(); }
  // It failed with `error`, which is transient. `moment` says when that is, for the line: "at
  // iteration 5". A line, unless it was away already.
  std::optional<std::string> lost(const Error& error, Instant now, const std::string& moment);
  // It answers. The time that it was away, if it was.
  std::optional<Instant> back(Instant now);
  // While it is away: a line every kWaitingNoteInterval; kUnavailable once the patience is over.
  std::optional<std::string> line(Instant now);
  std::optional<Error> given_up(Instant now) const;

 private:
  std::chrono::seconds patience_;
  std::optional<Instant> since_;
  Instant noted_{0};
  Error error_;  // the latest
};

}  // namespace speedo
