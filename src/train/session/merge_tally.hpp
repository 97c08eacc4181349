#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <speedo/train/master_session.hpp>

#include "train/session/contribution.hpp"

namespace speedo {

// How many iterations are merged, and of what. An iteration is one merge of which at least one
// contribution was left, whatever their number.
//
// Invariant: the iteration grows by one with each counted merge; contributions >= merges.
class MergeTally {
 public:
  // The counters that a saved state has.
  struct Counts {
    std::uint64_t merges = 0, contributions = 0, rejected = 0, discarded = 0, samples = 0;
    double staleness_sum = 0.0;
  };

  MergeTally(std::uint64_t iteration, Version newest)
      : first_iteration_(iteration), iteration_(iteration), newest_(newest) {}
  void restore(std::uint64_t iteration, const Counts& counts);

  std::uint64_t iteration() const { return iteration_; }
  std::uint64_t first_iteration() const { return first_iteration_; }  // of this master
  Version newest() const { return newest_; }                          // that is published
  const Counts& counts() const { return counts_; }
  const Counts& restored() const { return restored_; }  // of masters before this one

  // Requires: at least one contribution.
  void merged(std::span<const Contribution> contributions, Version version);
  void republished(Version version) { newest_ = version; }
  void rejected(std::uint64_t runs) { counts_.rejected += runs; }
  void discarded() { counts_.discarded += 1; }

  void show(MasterProgress& progress) const;

 private:
  std::uint64_t first_iteration_, iteration_;
  Version newest_;
  Counts counts_, restored_;
  std::optional<float> last_loss_;  // mean over the contributions of the last merge
};

}  // namespace speedo
