#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"
#include "checkpoint/rotation.hpp"

namespace speedo {

// What one snapshot takes on disk: the model, and all histories of the solver's rule, which its
// state has even where they are zeros. Errors: those of UpdateRule::history_count().
Result<std::int64_t> snapshot_bytes(std::int64_t weight_bytes,
                                    const caffe::SolverParameter& solver);

// What the snapshots of a training will take on disk.
struct SnapshotNeed {
  std::int64_t bytes = 0;  // of one
  std::int64_t count = 1;  // that will lie side by side
};
// How many snapshots of a training from `first` to `last` lie side by side at most: one each
// `interval` iterations (0: none) and one at the end, or those that the rules keep and the one that
// is written before an older one goes.
std::int64_t snapshots_at_once(std::int64_t first, std::int64_t last, std::int64_t interval,
                               const RotationRules& rules);

// Looks at the free space where files with this prefix go, and says what is found: a warning if not
// all of them will fit. Error: kCannotWrite if not even one does. A file system that does not tell
// its free space is not judged.
Result<void> check_snapshot_room(const std::string& prefix, const SnapshotNeed& need);

// The same of a folder with so many bytes free.
Result<void> judge_snapshot_room(const std::filesystem::path& folder, std::int64_t free_bytes,
                                 const SnapshotNeed& need);

}  // namespace speedo
