#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

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
// How many snapshots a training from `first` to `last` leaves: one each `interval` iterations (0:
// none), one at the end, and no more than `keep` of them (0: all).
std::int64_t snapshots_left(std::int64_t first, std::int64_t last, std::int64_t interval,
                            std::int64_t keep);

// Looks at the free space where files with this prefix go, and says what is found: a warning if not
// all of them will fit. Error: kCannotWrite if not even one does. A file system that does not tell
// its free space is not judged.
Result<void> check_snapshot_room(const std::string& prefix, const SnapshotNeed& need);

// The same of a folder with so many bytes free.
Result<void> judge_snapshot_room(const std::filesystem::path& folder, std::int64_t free_bytes,
                                 const SnapshotNeed& need);

}  // namespace speedo
