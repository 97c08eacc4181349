#pragma once

#include <cstdint>

#include <sys/types.h>

#include <speedo/base/result.hpp>

namespace speedo {

struct Confinement {
  pid_t parent = 0;                // whose thread's end is the process' end, too
  std::uint64_t memory_bytes = 0;  // on top of what the process has
};

// Makes this process one that can harm nobody, for good: system_calls.hpp, no more memory than it
// may have, no cores, no files that grow; the first to go where memory is short; signals of a
// terminal or of an init system do not reach it. Errors: kUnavailable, kUnsupported.
Result<void> confine_process(const Confinement& confinement);

}  // namespace speedo
