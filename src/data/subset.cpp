#include "data/subset.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/random.hpp>

#include "data/permute.hpp"

namespace speedo {

namespace {

Error bad_split(std::string what) { return Error{ErrorCode::kUsage, std::move(what)}; }

Result<std::vector<std::int64_t>> taken(std::int64_t size, const SplitOptions& options) {
  if (options.first < 0 || options.first >= size) {
    return bad_split(
        fmt::format("the first record wanted is {}, but there are {}", options.first, size));
  }
  const std::int64_t count = options.count.value_or(size - options.first);
  if (count < 1 || count > size - options.first) {
    return bad_split(fmt::format("{} records from record {} on are wanted, but there are {} in all",
                                 count, options.first, size));
  }
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), options.first);
  if (options.shuffle_seed) shuffle(indices, Random(*options.shuffle_seed));
  return indices;
}

constexpr double kSameShare = 1e-9;  // of a record

// `total` in proportion to the ratios: shares rounded down, and what is left over to those that
// lost most by that; of equal ones to the first.
std::vector<std::int64_t> apportioned(std::int64_t total, const std::vector<double>& ratios) {
  const double sum = std::accumulate(ratios.begin(), ratios.end(), 0.0);
  std::vector<std::int64_t> counts;
  std::vector<std::pair<double, std::size_t>> lost;  // negative, to sort the largest first
  for (const double ratio : ratios) {
    const double share = static_cast<double>(total) * (ratio / sum);
    counts.push_back(static_cast<std::int64_t>(share + kSameShare));
    lost.emplace_back(static_cast<double>(counts.back()) - share, lost.size());
  }
  std::sort(lost.begin(), lost.end());
  std::int64_t left = total - std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  for (std::size_t i = 0; left > 0; ++i, --left) ++counts[lost[i % lost.size()].second];
  return counts;
}

}  // namespace

void SubsetSource::read_group(std::span<RecordRead> reads) {
  std::vector<RecordRead> there(reads.begin(), reads.end());
  for (RecordRead& read : there) read.index = indices_[static_cast<std::size_t>(read.index)];
  source_.read_group(there);
  for (std::size_t i = 0; i < reads.size(); ++i) reads[i].outcome = std::move(there[i].outcome);
}

Result<Split> split_records(std::int64_t size, const SplitOptions& options) {
  SPEEDO_ASSIGN(const std::vector<std::int64_t> indices, taken(size, options));
  const auto count = static_cast<std::int64_t>(indices.size());
  const int rules = options.train_count.has_value() + options.test_every.has_value() +
                    options.test_fraction.has_value();
  if (rules == 0) return Split{indices, {}};
  if (rules > 1) return bad_split("give one rule to split by, not several");
  if (options.test_every && *options.test_every < 2) {
    return bad_split(
        fmt::format("every {}-th record for testing leaves none to train", *options.test_every));
  }
  if (options.test_fraction && !(*options.test_fraction > 0.0 && *options.test_fraction < 1.0)) {
    return bad_split(fmt::format("the fraction for testing is {}, but must lie between 0 and 1",
                                 *options.test_fraction));
  }
  const std::int64_t head = options.test_fraction
                                ? count - static_cast<std::int64_t>(std::llround(
                                              *options.test_fraction * static_cast<double>(count)))
                                : options.train_count.value_or(0);
  Split split;
  for (std::int64_t place = 0; place < count; ++place) {
    const bool test = options.test_every ? (place + 1) % *options.test_every == 0 : place >= head;
    (test ? split.test : split.train).push_back(indices[static_cast<std::size_t>(place)]);
  }
  if (split.train.empty() || split.test.empty()) {
    return bad_split(fmt::format("{} records split this way leave {} to train and {} to test",
                                 count, split.train.size(), split.test.size()));
  }
  return split;
}

// The next record goes to the part that is furthest behind its share of those that were dealt, this
// one included, and not full; of equal ones to the first.
Result<std::vector<std::vector<std::int64_t>>> deal_records(
    const std::vector<std::int64_t>& records, const std::vector<double>& ratios) {
  const std::vector<std::int64_t> counts =
      apportioned(static_cast<std::int64_t>(records.size()), ratios);
  const auto empty = std::find(counts.begin(), counts.end(), 0);
  if (empty != counts.end()) {
    return bad_split(fmt::format("part {} of {} would have none of the {} records",
                                 empty - counts.begin(), counts.size(), records.size()));
  }
  std::vector<std::vector<std::int64_t>> parts(ratios.size());
  double dealt = 0.0;
  for (const std::int64_t record : records) {
    dealt += 1.0;
    std::size_t next = parts.size();
    double most = 0.0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto size = static_cast<double>(parts[i].size());
      const auto count = static_cast<double>(counts[i]);
      if (size == count) continue;
      const double behind = dealt * count / static_cast<double>(records.size()) - size;
      if (next < parts.size() && behind <= most + kSameShare) continue;
      most = behind;
      next = i;
    }
    parts[next].push_back(record);
  }
  return parts;
}

}  // namespace speedo
