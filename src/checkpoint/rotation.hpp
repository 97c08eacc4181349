#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/checkpoint_file.hpp"

namespace speedo {

// Which checkpoints of a prefix stay.
struct RotationRules {
  std::optional<std::uint64_t> keep;  // the last so many; empty: all
  bool keep_best = false;             // and the one with the best test result
};

// Removes the checkpoints of this job, net and training that the rules do not keep. The newest that
// is whole and has finite weights stays whatever they say, and so does every file that is not as a
// record says that it was written. Of each checkpoint the record goes last: what a crash leaves
// half removed is known by it, and removed the next time. What cannot be removed is warned of.
// Returns how many it removed.
std::size_t rotate_checkpoints(const std::string& prefix, const CheckpointOwner& owner,
                               const TrainingId& training, const RotationRules& rules,
                               CheckpointFiles& files = disk_files());

// Removes the parts of a checkpoint whose files the one that replaces it does not name, such as the
// states of workers that are no more, as rotate_checkpoints() would.
void remove_replaced_parts(const std::filesystem::path& folder,
                           const record::CheckpointFile& replaced, const record::CheckpointFile& by,
                           CheckpointFiles& files);

}  // namespace speedo
