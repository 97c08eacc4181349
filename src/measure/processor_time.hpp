#pragma once

#include <ctime>

namespace speedo {

// What the kernel says that a thread or a process was on processors, by such a clock.
inline double processor_seconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace speedo
