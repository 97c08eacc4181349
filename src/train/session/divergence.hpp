#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <speedo/base/ids.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/train/strategy.hpp>

namespace speedo {

// How many runs in a row came to nothing: from `max` on without a finite loss and contribution, or
// kNonFiniteRunsMax on if the store lost some of them, training has diverged.
class Divergence {
 public:
  explicit Divergence(std::uint64_t max) : max_(max) {}
  void merged() { in_row_ = not_finite_ = 0; }
  void not_finite() {
    in_row_ += 1;
    not_finite_ += 1;
  }
  // Contributions of these runs were left out of a merge, missing or damaged; `next` is the number
  // of the next run. A store that lost its data takes with it the contributions of all runs then
  // under way: runs that were ordered before the last rejection that counted are no further sign of
  // divergence.
  void rejected(std::span<const RunId> runs, RunId next) {
    for (const RunId run : runs) {
      if (run < counted_before_) continue;
      counted_before_ = next;
      in_row_ += 1;
    }
  }
  std::uint64_t in_row() const { return in_row_; }
  // Not all of them are what the store has lost, of which the weights know nothing.
  bool is_suspected() const { return not_finite_ > 0; }
  bool is_certain() const {
    return not_finite_ >= max_ || in_row_ >= std::max<std::uint64_t>(max_, kNonFiniteRunsMax);
  }

 private:
  std::uint64_t max_;
  std::uint64_t in_row_ = 0, not_finite_ = 0;
  RunId counted_before_{0};
};

}  // namespace speedo
