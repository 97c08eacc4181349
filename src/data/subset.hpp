#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/data/data_source.hpp>

namespace speedo {

// Some records of another source, in an order of their own. Requires: `source` outlives it, indices
// are valid, and there is at least one.
class SubsetSource : public DataSource {
 public:
  SubsetSource(DataSource& source, std::vector<std::int64_t> indices)
      : source_(source), indices_(std::move(indices)) {
    SPEEDO_ASSERT(!indices_.empty());
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  Result<void> read(std::int64_t index, Record& record) override {
    return source_.read(indices_[static_cast<std::size_t>(index)], record);
  }
  Result<bool> read_datum(std::int64_t index, std::string& datum) override {
    return source_.read_datum(indices_[static_cast<std::size_t>(index)], datum);
  }
  void read_group(std::span<RecordRead> reads) override;

 private:
  DataSource& source_;
  std::vector<std::int64_t> indices_;
};

// Which records are taken, in which order, and which of them are kept for testing. At most one of
// the three split fields is set.
struct SplitOptions {
  std::int64_t first = 0;                          // records before this one are left out
  std::optional<std::int64_t> count = {};          // and all after so many
  std::optional<std::uint64_t> shuffle_seed = {};  // shuffle what was taken, before it is split
  std::optional<std::int64_t> train_count = {};    // so many for training, the rest for testing
  std::optional<std::int64_t> test_every = {};     // every k-th (the last of each k) for testing
  std::optional<double> test_fraction = {};        // the last part for testing
};

struct Split {
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> test;  // empty without a split
};

// Error: kUsage for contradictory numbers, or if a part would stay empty.
Result<Split> split_records(std::int64_t size, const SplitOptions& options);

// Deals records out to parts in proportion to their `ratios`, one after another, so that each part
// is like the whole however the records are sorted. Each part gets its share, rounded down or up.
// Requires: ratios above 0 and finite. Error: kUsage if a part would stay empty.
Result<std::vector<std::vector<std::int64_t>>> deal_records(
    const std::vector<std::int64_t>& records, const std::vector<double>& ratios);

}  // namespace speedo
