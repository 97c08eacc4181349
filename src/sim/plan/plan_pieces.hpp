#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <speedo/train/update.hpp>

#include "sim/plan/cost_cluster.hpp"

namespace speedo::sim {

// The buckets of a net: one of everything where none are described.
std::vector<BucketCosts> buckets_of(const NetCosts& net);

// A record as a plan moves it: in pieces of whole chunks, as many as a plan has time for. A net of
// few chunks moves chunk by chunk, as production does.
class Pieces {
 public:
  // Of a contribution, and of what is made of those of so many workers and read by each: the
  // weights, or of replicated updates the mean gradient and all factors.
  Pieces(const NetCosts& net, const UpdateSpec& update, std::uint64_t workers);

  std::size_t count() const { return count_; }
  std::uint64_t floats(std::size_t piece) const;
  std::uint64_t all_floats() const { return floats_; }
  // What is made of a piece of each contribution.
  std::uint64_t merged_floats(std::size_t piece) const;
  std::uint64_t all_merged_floats() const;
  // Products of which each worker makes this bucket's gradient, from its own and others' factors.
  std::uint64_t products_of(std::size_t bucket) const {
    return factors_[bucket] > 0 ? workers_ : 0;
  }
  // What covers a bucket of the weights, first and behind the last.
  struct Range {
    std::size_t first = 0, end = 0;
  };
  Range of_bucket(std::size_t bucket) const;
  // What covers the histories, in a record that holds them.
  Range of_histories() const;

  // Which pieces are whole, of a record that becomes final bucket by bucket, in all of its arrays.
  class Tally {
   public:
    explicit Tally(const Pieces& pieces);
    std::vector<std::size_t> add(std::size_t bucket);  // those that are whole by that
    std::vector<std::size_t> add_all();

   private:
    void add(std::uint64_t begin, std::uint64_t end, std::vector<std::size_t>& whole);
    const Pieces& pieces_;
    std::vector<std::uint64_t> lacking_;  // floats
  };

 private:
  Range covering(std::uint64_t begin, std::uint64_t end) const;

  const std::uint64_t workers_;
  std::uint64_t array_floats_ = 0, floats_ = 0;
  std::uint64_t arrays_ = 1;  // weights, and histories
  std::uint64_t piece_floats_ = 0;
  std::size_t count_ = 0;
  std::vector<std::uint64_t> begins_;  // of buckets, and the end of the last
  std::vector<std::uint64_t> factors_;  // by bucket: floats at its end, 0 if it travels whole
};

}  // namespace speedo::sim
