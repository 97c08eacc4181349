#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include <speedo/base/ids.hpp>
#include <speedo/train/messages.hpp>

namespace speedo {

// Which of a snapshot's states are still to be given to workers: the smallest free seat goes to
// whoever is ordered to train for the first time. A state counts as taken once that run is
// reported; that of a worker that dies before goes to the next one.
//
// Invariant: a seat is free, held by one worker, or used up.
// Thread safety: one thread.
class StateSeats {
 public:
  explicit StateSeats(std::uint64_t count) {
    for (std::uint64_t seat = 0; seat < count; ++seat) free_.insert(free_.end(), seat);
  }

  // kNoSeat if none is free.
  std::uint64_t give(WorkerId worker) {
    if (free_.empty()) return kNoSeat;
    const std::uint64_t seat = *free_.begin();
    free_.erase(free_.begin());
    held_.emplace(worker, seat);
    return seat;
  }
  // The seat that is used up by that, if one is.
  std::optional<std::uint64_t> reported(WorkerId worker) {
    const auto held = held_.extract(worker);
    return held ? std::optional(held.mapped()) : std::nullopt;
  }
  void gone(WorkerId worker) {
    if (const auto held = held_.extract(worker)) free_.insert(held.mapped());
  }

 private:
  std::set<std::uint64_t> free_;
  std::map<WorkerId, std::uint64_t> held_;
};

}  // namespace speedo
