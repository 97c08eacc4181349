#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <sys/types.h>

namespace speedo {

// Fills `memory` from a file that was opened with O_NONBLOCK, until it is full or the file ends. A
// named pipe is waited for until somebody has written to it and closed it, but only as long as
// `stopped` says no (none: for ever). Returns the bytes read, or -1 with errno: ECANCELED if
// stopped.
ssize_t read_patiently(int descriptor, std::span<char> memory,
                       const std::function<bool()>& stopped);

}  // namespace speedo
