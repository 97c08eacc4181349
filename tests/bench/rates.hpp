#pragma once

#include <cstdint>
#include <functional>

namespace speedo::bench {

// Runs body(thread) on all threads at once; returns the seconds until the last has ended, the
// shortest of `runs` times.
double best_seconds(int runs, int threads, const std::function<void(int thread)>& body);

// Memory bandwidth in GB/s on arrays that no cache holds.
struct MemoryRates {
  double triad = 0.0;  // a = b + 3 c, 12 bytes an element: what is read into the cache before it is
                       // written does not count
  double copy = 0.0;   // memcpy, 8 bytes an element
};
MemoryRates measure_memory(int threads, std::int64_t bytes_per_array = std::int64_t{256} << 20);

}  // namespace speedo::bench
