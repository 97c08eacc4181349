#pragma once

#include <filesystem>
#include <optional>

namespace speedo::cpu {

// The processors' worth of time that control groups (version 1 or 2, this process's and those above
// it) allow this process; nothing where they set no limit. `root`: where /proc and /sys lie.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

}  // namespace speedo::cpu
