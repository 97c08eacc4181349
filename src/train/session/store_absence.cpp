#include "train/session/store_absence.hpp"

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "train/note_text.hpp"

namespace speedo {

std::optional<std::string> StoreAbsence::lost(const Error& error, Instant now,
                                              const std::string& moment) {
  error_ = error;
  if (since_) return std::nullopt;
  since_ = noted_ = now;
  return fmt::format("the store is out of reach {}: {}; waiting up to {} s (--store-timeout)",
                     moment, error.message, patience_.count());
}

std::optional<Instant> StoreAbsence::back(Instant now) {
  if (!since_) return std::nullopt;
  const Instant away = now - *since_;
  since_.reset();
  return away;
}

std::optional<std::string> StoreAbsence::line(Instant now) {
  if (!since_ || now - noted_ < kWaitingNoteInterval) return std::nullopt;
  noted_ = now;
  return fmt::format(
      "the store has been out of reach for {} s; training ends after {} s (--store-timeout)",
      whole_seconds(now - *since_), patience_.count());
}

std::optional<Error> StoreAbsence::given_up(Instant now) const {
  if (!since_ || now - *since_ < patience_) return std::nullopt;
  return Error{ErrorCode::kUnavailable, fmt::format("{}; out of reach for {} s (--store-timeout)",
                                                    error_.message, whole_seconds(now - *since_))};
}

}  // namespace speedo
