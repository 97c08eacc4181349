#pragma once

#include <cstdint>

#include "gpu/launch/kernel.hpp"
#include "gpu/support/fold.hpp"

namespace speedo::gpu {

// The rows of a matrix shared out among groups of threads: a group of 4 to 256 threads, as the
// columns are many, for each row.
//
// A block's shared memory has a double for each thread, `Sums` times, and then `Results` doubles
// for each group, where what was folded stays.
class RowGroups {
 public:
  static constexpr int kThreads = 256, kWidthMin = 4;

  RowGroups(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns) {
    constexpr std::int64_t kColumnsPerThread = 4;
    while (width_ < kThreads && width_ * kColumnsPerThread < columns) width_ *= 2;
  }

  SPEEDO_HOST_DEVICE std::int64_t columns() const { return columns_; }
  SPEEDO_HOST_DEVICE int width() const { return width_; }
  // Phases that fold a double of each thread.
  SPEEDO_HOST_DEVICE int fold_count() const { return fold_phases(width_); }

  Grid grid(int sums, int results) const {
    const std::int64_t groups = kThreads / width_;
    return {(rows_ + groups - 1) / groups, kThreads,
            static_cast<std::size_t>(sums * kThreads + results * kThreads / kWidthMin) *
                sizeof(double)};
  }

  SPEEDO_HOST_DEVICE std::int64_t row(const Lane& lane) const {
    return lane.block * (kThreads / width_) + lane.thread / width_;
  }
  SPEEDO_HOST_DEVICE bool has_row(const Lane& lane) const { return row(lane) < rows_; }
  SPEEDO_HOST_DEVICE int member(const Lane& lane) const { return lane.thread % width_; }

  // Calls body(column) for the thread's share of its row.
  template <class Body>
  SPEEDO_HOST_DEVICE void for_each_column(const Lane& lane, const Body& body) const {
    for (std::int64_t i = member(lane); i < columns_; i += width_) body(i);
  }

  // The place of a thread's double, the k-th of it.
  SPEEDO_HOST_DEVICE double& own(const Lane& lane, int k = 0) const {
    return reinterpret_cast<double*>(lane.shared)[k * kThreads + lane.thread];
  }
  // Of `sums` doubles a thread, the k-th result of the thread's group.
  SPEEDO_HOST_DEVICE double& result(const Lane& lane, int sums, int k = 0) const {
    return reinterpret_cast<double*>(
        lane.shared)[sums * kThreads + k * (kThreads / kWidthMin) + lane.thread / width_];
  }
  // A phase of folding the k-th doubles; true for the thread that has what came out, in own(), with
  // the last one.
  template <class Combine>
  SPEEDO_HOST_DEVICE bool fold_own(int phase, const Lane& lane, const Combine& combine,
                                   int k = 0) const {
    const int i = member(lane);
    fold(phase, width_, i, 1, &own(lane, k) - i, combine);
    return i == 0 && phase == fold_count() - 1;
  }

 private:
  std::int64_t rows_, columns_;
  int width_ = kWidthMin;
};

}  // namespace speedo::gpu
