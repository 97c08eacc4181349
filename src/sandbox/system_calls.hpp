#pragma once

#include <speedo/base/result.hpp>

namespace speedo {

// From here on this process computes, takes memory, and reads and writes what is open already;
// any other system call (of files, sockets, other processes, code) ends it with SIGSYS. For good,
// on all of its threads. Errors: kUnsupported, where the kernel lacks seccomp or a container
// forbids it.
Result<void> allow_computing_alone();

}  // namespace speedo
