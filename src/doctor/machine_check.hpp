#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/memory_limit.hpp"
#include "doctor/finding.hpp"

namespace speedo {

// What this process may use of the machine: "kernels", "blas", "threads", "memory" (nothing but how
// much there is), "open files", "temporary files",
// "clock". `root`: where /proc and /sys lie.
Findings check_machine(const std::filesystem::path& root = "/");

// "memory" for what is predicted to take so much; `parts`: what it is made of.
Finding check_memory(std::int64_t needed_bytes, const MemoryLimit& limit,
                     const std::string& parts = {});

// "open files": a limit of so many, of which `connections` are wanted.
Finding check_open_files(std::uint64_t limit, std::uint64_t connections);

}  // namespace speedo
