#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "local/children.hpp"

namespace speedo {

// A range of equal pieces of work, batches say.
struct WorkPart {
  std::int64_t first = 0, count = 0;
};

// A process that does a part and writes what it makes to standard output, here or by ssh elsewhere.
struct PartWorker {
  std::string name;
  std::function<ChildCommand(const WorkPart& part)> command;
};

struct PartedWork {
  std::vector<PartWorker> workers;  // one at least
  std::int64_t pieces = 0;          // from 1
  std::int64_t pieces_a_part = 1;
  std::filesystem::path folder;  // for what workers make, until it is taken
  // Takes what a part's worker wrote, part after part in their order.
  std::function<Result<void>(const WorkPart& part, const std::filesystem::path& made)> take;
  std::function<bool()> stopped;  // asked again and again; may be empty
};

inline constexpr int kPartAttemptsMax = 5;    // of one part
inline constexpr int kWorkerFailuresMax = 3;  // in a row, before a worker gets no more parts

// Has each part done by one of the workers. A part whose worker dies is given out again; so is one
// whose output `take` finds to be kCorrupt. Parts far ahead of those that were taken wait, so that
// the folder holds few. Errors: what a worker said that ended of itself, with its code;
// kUnavailable when it was stopped, no worker is left, or a part has failed too often; those of
// `take`.
Result<void> do_parted_work(const PartedWork& work, Children& children);

}  // namespace speedo
