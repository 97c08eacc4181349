#pragma once

#include <ctime>
#include <fstream>

namespace speedo {

// What the kernel says that a thread or a process was on processors, by such a clock.
inline double processor_seconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// How long this thread could have run, but others had the processors; 0 where the kernel does not
// tell.
inline double seconds_kept_waiting() {
  std::ifstream file("/proc/thread-self/schedstat");
  double ran = 0.0, waited = 0.0;
  return file >> ran >> waited ? waited / 1e9 : 0.0;
}

}  // namespace speedo
