#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <speedo/core/parameter_arena.hpp>

#include "store/chunk_range.hpp"
#include "train/merge/chunk_merge.hpp"
#include "train/merge/statistic_ranges.hpp"

namespace speedo {

// The norms of contributions that are looked at whole before they are merged.

// What counts as far too large: more than `factor` times the median of the last kNormsKept norms.
// Nothing does before there are kNormsMin. The norms of outliers are kept, too: what has changed
// for good is no outlier any more once it is half of what is kept, and one worker among three or
// more never is. A worker that sends contributions of a usual size and a wrong direction is not
// found.
class NormFilter {
 public:
  static constexpr std::size_t kNormsKept = 64, kNormsMin = 8;
  // 0: nothing is an outlier.
  explicit NormFilter(double factor) : factor_(factor) {}
  bool is_outlier(double norm) const;
  void keep(double norm);
  void clear() { norms_.clear(); }

 private:
  double factor_;
  std::vector<double> norms_;  // the oldest at next_, if it is full
  std::size_t next_ = 0;
};

// The sum of squares of a contribution's chunk: of the elements that the layout has, but for those
// of statistics, which no gradient moves.
class ChunkSquares {
 public:
  explicit ChunkSquares(const ParameterLayout& layout);
  // Chunks behind these hold nothing but histories.
  std::size_t chunks() const { return chunk_count(element_count_); }
  // Not finite if any element is, a statistic too. Requires: chunk < chunks().
  double of(std::size_t chunk, std::span<const float> values) const;

 private:
  const std::uint64_t element_count_;
  const StatisticRanges statistics_;
};

// Sums up squares instead of merging. The same result in any order of the chunks. At fault is what
// is not finite, statistics too.
class NormSums : public ChunkMerge {
 public:
  NormSums(const ParameterLayout& layout, std::size_t contributions);
  Fault merge(std::size_t chunk, Parts parts) override;
  void put(std::size_t /*chunk*/) override {}
  Result<void> finish(std::string /*state*/) override { return {}; }
  // Requires: all chunks were merged.
  double norm(std::size_t contribution) const;
  // By chunk, see ChunkSquares.
  std::vector<double> squares(std::size_t contribution) const;

 private:
  const ChunkSquares of_chunk_;
  const std::size_t contributions_;
  std::vector<double> squares_;  // by chunk, then by contribution
};

// A merge of contributions whose norms were taken before: at fault is one that no longer has them,
// as its worker, who may write it at any time, has written it anew.
class MergeAsSeen : public ChunkMerge {
 public:
  // `seen`: the squares of each contribution. `has_changed` outlives the merge and becomes true if
  // the fault is such a one.
  MergeAsSeen(std::unique_ptr<ChunkMerge> merge, const ParameterLayout& layout,
              std::vector<std::vector<double>> seen, std::atomic<bool>& has_changed);
  Fault merge(std::size_t chunk, Parts parts) override;
  void put(std::size_t chunk) override { merge_->put(chunk); }
  void ordered() override { merge_->ordered(); }
  Result<void> finish(std::string state) override { return merge_->finish(std::move(state)); }

 private:
  const std::unique_ptr<ChunkMerge> merge_;
  const ChunkSquares squares_;
  const std::vector<std::vector<double>> seen_;
  std::atomic<bool>& has_changed_;
};

}  // namespace speedo
