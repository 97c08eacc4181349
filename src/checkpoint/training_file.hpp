#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/train/training_id.hpp>

#include "checkpoint/checkpoint_files.hpp"

namespace speedo {

// PREFIX.JOB.training names the training of a job that goes on under a snapshot prefix, from its
// begin, before its first checkpoint: one line, "training " and 32 hexadecimal digits. With it a
// master whose store is empty knows whose checkpoint files are this training's.

std::filesystem::path training_file(const std::string& prefix, const std::string& job);

// Whole or not at all. Error: kCannotWrite.
Result<void> write_training_file(const std::filesystem::path& file, const TrainingId& training,
                                 CheckpointFiles& files = disk_files());

// Empty if there is none. One that cannot be read is warned of and counts as none.
std::optional<TrainingId> read_training_file(const std::filesystem::path& file,
                                             CheckpointFiles& files = disk_files());

}  // namespace speedo
