#include "data/subset.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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

}  // namespace

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

}  // namespace speedo
