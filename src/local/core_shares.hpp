#pragma once

#include <cstdint>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// Threads of each of `workers` that share `threads`: one at least, and what is left over goes to
// the first ones, unless all are to be equal. Requires: both positive.
std::vector<int> share_threads(int threads, std::uint64_t workers, bool equal);

// What the master of a local cluster tests with.
inline constexpr int kMasterThreads = 1;
// The workers' shares where there is a master: its thread comes out of what is left over where
// `threads` do not go evenly into the workers, else besides. Its merger's threads are not counted:
// in rounds the workers wait for them.
std::vector<int> share_with_master(int threads, std::uint64_t workers);

// The processors that this process may run on, ascending.
std::vector<int> allowed_processors();

// A set of processors for each of those who have so many threads, no processor in two. Error:
// kUsage if there are not enough.
Result<std::vector<std::vector<int>>> share_processors(const std::vector<int>& processors,
                                                       const std::vector<int>& threads);

}  // namespace speedo
