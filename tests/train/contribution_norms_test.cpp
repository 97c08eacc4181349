#include "train/merge/contribution_norms.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "store/chunk_range.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

NormFilter filter_of(double factor, std::size_t count, double norm) {
  NormFilter filter(factor);
  for (std::size_t i = 0; i < count; ++i) filter.keep(norm);
  return filter;
}

TEST_CASE("a norm is an outlier against the median of those before") {
  CHECK_FALSE(filter_of(4.0, NormFilter::kNormsMin - 1, 1.0).is_outlier(1e9));
  const NormFilter filter = filter_of(4.0, NormFilter::kNormsMin, 1.0);
  CHECK_FALSE(filter.is_outlier(4.0));
  CHECK(filter.is_outlier(4.1));
  CHECK_FALSE(filter.is_outlier(0.0));
  CHECK_FALSE(filter_of(0.0, 100, 1.0).is_outlier(1e9));
}

TEST_CASE("one worker of three that always sends outliers never becomes the measure") {
  NormFilter filter(4.0);
  for (std::size_t i = 0; i < 10 * NormFilter::kNormsKept; ++i) {
    const double norm = i % 3 == 2 ? 1000.0 : 1.0;
    if (i >= NormFilter::kNormsKept) CHECK(filter.is_outlier(norm) == (i % 3 == 2));
    filter.keep(norm);
  }
}

TEST_CASE("norms that have changed for good are usual after half of what is kept") {
  NormFilter filter = filter_of(4.0, 2 * NormFilter::kNormsKept, 1.0);
  std::size_t left_out = 0;
  while (filter.is_outlier(100.0)) {
    filter.keep(100.0);
    ++left_out;
  }
  CHECK(left_out == NormFilter::kNormsKept / 2);
  filter.clear();
  CHECK_FALSE(filter.is_outlier(1e9));
}

// A model of one parameter and, somewhere, statistics.
ParameterLayout layout_of(std::size_t count, std::size_t statistics = 0) {
  const auto add = [](ParameterLayout& layout, std::size_t floats, bool is_statistic) {
    ParameterSlot slot;
    slot.layer = is_statistic ? "norm" : "ip";
    slot.shape = Shape({static_cast<std::int64_t>(floats)});
    slot.is_statistic = is_statistic;
    layout.add(slot);
  };
  ParameterLayout layout;
  if (statistics > 0) add(layout, statistics, true);
  add(layout, count, false);
  if (statistics > 0) add(layout, statistics, true);
  return layout;
}

TEST_CASE("statistics are no part of a contribution's norm, and must be finite all the same") {
  const std::size_t count = chunk_length() + 16, statistics = 32;
  const ParameterLayout layout = layout_of(count, statistics);
  std::vector<float> values(static_cast<std::size_t>(layout.element_count()), 1e6F);
  std::fill_n(values.begin() + statistics, count, 2.0F);
  const auto merge = [&](NormSums& sums) {
    ChunkMerge::Fault fault;
    for (std::size_t chunk = 0; chunk < chunk_count(values.size()); ++chunk) {
      const std::vector<std::span<const float>> parts = {
          chunk_of(std::span<const float>(values), chunk)};
      if (!fault) fault = sums.merge(chunk, parts);
    }
    return fault;
  };
  NormSums sums(layout, 1);
  CHECK_FALSE(merge(sums));
  CHECK(sums.norm(0) == Approx(2.0 * std::sqrt(static_cast<double>(count))));
  values.back() = std::numeric_limits<float>::infinity();
  NormSums others(layout, 1);
  CHECK(merge(others) == std::size_t{0});
}

TEST_CASE("squares are summed over the chunks in any order, up to the count") {
  const std::size_t count = 2 * chunk_length() + 17;
  std::vector<float> first(count, 3.0F), second(count, 1e30F);
  NormSums sums(layout_of(count - 1), 2);
  for (const std::size_t chunk : {std::size_t{2}, std::size_t{0}, std::size_t{1}}) {
    const std::vector<std::span<const float>> parts = {
        chunk_of(std::span<const float>(first), chunk),
        chunk_of(std::span<const float>(second), chunk)};
    CHECK_FALSE(sums.merge(chunk, parts));
  }
  CHECK(sums.norm(0) == Approx(3.0 * std::sqrt(static_cast<double>(count - 1))));
  CHECK(sums.norm(1) == Approx(1e30 * std::sqrt(static_cast<double>(count - 1))));
  second[3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::span<const float>> bad = {chunk_of(std::span<const float>(first), 0),
                                                   chunk_of(std::span<const float>(second), 0)};
  CHECK(sums.merge(0, bad) == std::size_t{1});
}

}  // namespace
}  // namespace speedo
