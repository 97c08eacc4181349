#include "bench/rates.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/simd.hpp"

namespace speedo::bench {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kMemoryRuns = 5;

SPEEDO_MULTIVERSION
void triad(std::int64_t n, const float* b, const float* c, float* a) {
  for (std::int64_t i = 0; i < n; ++i) a[i] = b[i] + 3.0F * c[i];
}

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

double run_once(int threads, const std::function<void(int)>& body) {
  std::barrier together(threads);
  SteadyClock::time_point start;
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) {
    others.emplace_back([&, thread] {
      together.arrive_and_wait();
      body(thread);
    });
  }
  together.arrive_and_wait();
  start = SteadyClock::now();
  body(0);
  for (std::thread& other : others) other.join();
  return seconds_since(start);
}

}  // namespace

double best_seconds(int runs, int threads, const std::function<void(int thread)>& body) {
  double best = 0.0;
  for (int run = 0; run < runs; ++run) {
    const double seconds = run_once(threads, body);
    best = run == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

MemoryRates measure_memory(int threads, std::int64_t bytes_per_array) {
  const std::int64_t count = bytes_per_array / static_cast<std::int64_t>(sizeof(float));
  const auto size = static_cast<std::size_t>(count);
  std::vector<float> a(size), b(size, 1.0F), c(size, 2.0F);
  const auto part = [&](int thread) { return count * thread / threads; };
  const double triad_seconds = best_seconds(kMemoryRuns, threads, [&](int thread) {
    const std::int64_t first = part(thread);
    triad(part(thread + 1) - first, b.data() + first, c.data() + first, a.data() + first);
  });
  const double copy_seconds = best_seconds(kMemoryRuns, threads, [&](int thread) {
    const std::int64_t first = part(thread);
    std::memcpy(a.data() + first, b.data() + first,
                static_cast<std::size_t>(part(thread + 1) - first) * sizeof(float));
  });
  const auto bytes = static_cast<double>(bytes_per_array);
  return {3.0 * bytes / triad_seconds / 1e9, 2.0 * bytes / copy_seconds / 1e9};
}

}  // namespace speedo::bench
