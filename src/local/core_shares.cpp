#include "local/core_shares.hpp"

#include <sched.h>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>

namespace speedo {

std::vector<int> share_threads(int threads, std::uint64_t workers, bool equal) {
  SPEEDO_ASSERT(threads >= 1 && workers >= 1);
  const auto all = static_cast<std::uint64_t>(threads);
  const std::uint64_t each = std::max<std::uint64_t>(1, all / workers);
  const std::uint64_t left = equal || all < workers ? 0 : all % workers;
  std::vector<int> shares(workers, static_cast<int>(each));
  for (std::uint64_t worker = 0; worker < left; ++worker) shares[worker] += 1;
  return shares;
}

std::vector<int> share_with_master(int threads, std::uint64_t workers) {
  const bool divides = static_cast<std::uint64_t>(threads) % workers == 0;
  const bool suffices = static_cast<std::uint64_t>(threads) > workers;
  return share_threads(suffices && !divides ? threads - kMasterThreads : threads, workers, false);
}

std::vector<int> allowed_processors() {
  std::vector<int> processors;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed)) processors.push_back(processor);
  }
  return processors;
}

Result<std::vector<std::vector<int>>> share_processors(const std::vector<int>& processors,
                                                       const std::vector<int>& threads) {
  const int wanted = std::accumulate(threads.begin(), threads.end(), 0);
  if (static_cast<std::size_t>(wanted) > processors.size()) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("{} worker{} with {} threads in all cannot be pinned to {} processor{}",
                    threads.size(), threads.size() == 1 ? "" : "s", wanted, processors.size(),
                    processors.size() == 1 ? "" : "s")};
  }
  std::vector<std::vector<int>> shares;
  auto next = processors.begin();
  for (const int count : threads) {
    shares.emplace_back(next, next + count);
    next += count;
  }
  return shares;
}

}  // namespace speedo
