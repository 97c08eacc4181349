#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "data/recently_used.hpp"

namespace speedo {

// The orders in which the records of a source are read, one drawn for each epoch from the seed.
// Thread safety: of() may be called from any thread.
class EpochOrder {
 public:
  // Requires: 1 <= record_count <= UINT32_MAX.
  EpochOrder(std::uint64_t record_count, std::uint64_t seed)
      : record_count_(record_count), seed_(seed) {}

  // The record at each place of the epoch. Keeps the epochs that were asked for last.
  std::shared_ptr<const std::vector<std::uint32_t>> of(std::uint64_t epoch);

 private:
  using Order = std::shared_ptr<const std::vector<std::uint32_t>>;
  // Threads that read ahead work on both sides of an epoch's end.
  static constexpr std::size_t kKeptEpochs = 3;

  const std::uint64_t record_count_, seed_;
  std::mutex mutex_;
  RecentlyUsed<std::uint64_t, Order> kept_{kKeptEpochs};  // by epoch; guarded by mutex_
};

}  // namespace speedo
