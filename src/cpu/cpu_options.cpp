#include <speedo/cpu/cpu_options.hpp>

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cpu/cpu_quota.hpp"

namespace speedo {
namespace {

// Processors of this process' affinity; the kernel says EINVAL to a mask too small for its own.
int allowed_processors() {
  constexpr std::size_t kMaskBitsMax = std::size_t{1} << 16U;
  for (std::size_t bits = 1024; bits <= kMaskBitsMax; bits *= 2) {
    std::vector<cpu_set_t> mask((bits + CPU_SETSIZE - 1) / CPU_SETSIZE);
    const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) return CPU_COUNT_S(bytes, mask.data());
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int default_threads() {
  int threads = allowed_processors();
  if (const auto quota = cpu::cpu_quota(); quota.has_value()) {
    threads = static_cast<int>(std::min<double>(threads, std::ceil(*quota)));
  }
  if (const char* wanted = std::getenv("OPENBLAS_NUM_THREADS"); wanted != nullptr) {
    const long limit = std::strtol(wanted, nullptr, 10);
    if (limit >= 1) threads = static_cast<int>(std::min<long>(threads, limit));
  }
  return std::clamp(threads, 1, kCpuThreadsMax);
}

}  // namespace speedo
