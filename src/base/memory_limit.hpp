#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace speedo {

// The most memory that a process can have here.
struct MemoryLimit {
  std::int64_t bytes = INT64_MAX;
  std::string what = "unknown";  // "the machine's memory", "the limit of its cgroup"
};
// The smaller of the machine's memory and the limit of the process' control group or of any above
// it (cgroup version 1 or 2). `root`: where /proc and /sys lie.
MemoryLimit memory_limit(const std::filesystem::path& root = "/");

// Resident memory of this process, now and at its peak; 0 if the system does not tell.
std::int64_t resident_bytes();
std::int64_t peak_resident_bytes();

// "17 KiB", "812 MiB", "1.62 GiB".
std::string format_bytes(std::int64_t bytes);

}  // namespace speedo
