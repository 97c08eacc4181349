#pragma once

#include <compare>
#include <cstdint>

namespace speedo {

// A number with a meaning: two kinds cannot be mixed by accident.
template <class Tag>
struct Id {
  std::uint64_t value = 0;
  auto operator<=>(const Id&) const = default;
};

// One incarnation of one worker, numbered by the master in the order of joining, from 0. A worker
// that comes back gets a new one, so that it also fences off the earlier one.
using WorkerId = Id<struct WorkerTag>;

// One assignment of work, unique within a job. Makes duplicates and late answers harmless.
using RunId = Id<struct RunTag>;

// A version of the master's weights: 0 before the first merge, plus one with each merge.
using Version = Id<struct VersionTag>;

}  // namespace speedo
