// Exact clustering in one dimension: of all ways to cut the workers, ordered by speed, into k runs
// of neighbours, the one with the least sum of squares of log speed around the groups' means.
// Logarithms, because a round costs its slowest member a factor. Dynamic programming over k:
//   best(k, n) = min over m < n of  best(k - 1, m) + squares(m .. n - 1),   best(0, 0) = 0,
// in time workers^2 for each k.

#include "speed_clusters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

class Clusters {
 public:
  // Requires: `values` ascend.
  explicit Clusters(std::vector<double> values) : values_(std::move(values)) {
    sums_.push_back(0.0);
    squares_.push_back(0.0);
    for (const double value : values_) {
      sums_.push_back(sums_.back() + value);
      squares_.push_back(squares_.back() + value * value);
    }
    best_.assign(values_.size() + 1, std::numeric_limits<double>::infinity());
    best_[0] = 0.0;
  }

  // One group more than before.
  void refine() {
    const std::size_t size = values_.size();
    std::vector<double> next(size + 1, std::numeric_limits<double>::infinity());
    std::vector<std::size_t> start(size + 1, 0);
    for (std::size_t end = 1; end <= size; ++end) {
      for (std::size_t begin = 0; begin < end; ++begin) {
        const double cost = best_[begin] + squares_around_mean(begin, end);
        if (cost >= next[end]) continue;
        next[end] = cost;
        start[end] = begin;
      }
    }
    best_ = std::move(next);
    starts_.push_back(std::move(start));
  }

  std::size_t count() const { return starts_.size(); }

  // Where the groups begin, and behind them the end.
  std::vector<std::size_t> cuts() const {
    std::vector<std::size_t> cuts{values_.size()};
    for (auto start = starts_.rbegin(); start != starts_.rend(); ++start) {
      cuts.push_back((*start)[cuts.back()]);
    }
    std::ranges::reverse(cuts);
    return cuts;
  }

  double widest() const {
    const auto ends = cuts();
    double width = 0.0;
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      width = std::max(width, values_[ends[i + 1] - 1] - values_[ends[i]]);
    }
    return width;
  }

 private:
  double squares_around_mean(std::size_t begin, std::size_t end) const {
    const double sum = sums_[end] - sums_[begin];
    const double squares = squares_[end] - squares_[begin];
    return std::max(0.0, squares - sum * sum / static_cast<double>(end - begin));
  }

  std::vector<double> values_, sums_, squares_;
  std::vector<double> best_;                         // for count() groups, by number of values
  std::vector<std::vector<std::size_t>> starts_;     // of the last group, by groups and values
};

}  // namespace

std::vector<std::vector<WorkerId>> cluster_speeds(const std::map<WorkerId, double>& speeds,
                                                  std::uint64_t count) {
  if (speeds.empty()) return {};
  std::vector<std::pair<double, WorkerId>> ordered;
  for (const auto& [worker, speed] : speeds) {
    SPEEDO_ASSERT(speed > 0.0);
    ordered.emplace_back(std::log(speed), worker);
  }
  std::ranges::sort(ordered);
  std::vector<double> values;
  for (const auto& [value, worker] : ordered) values.push_back(value);

  Clusters clusters(std::move(values));
  const std::uint64_t wanted = std::min<std::uint64_t>(count, ordered.size());
  do {
    clusters.refine();
  } while (count > 0 ? clusters.count() < wanted
                     : clusters.count() < ordered.size() &&
                           clusters.widest() > std::log(kSpeedSpread));

  std::vector<std::vector<WorkerId>> groups;
  const auto cuts = clusters.cuts();
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    auto& group = groups.emplace_back();
    for (std::size_t j = cuts[i]; j < cuts[i + 1]; ++j) group.push_back(ordered[j].second);
    std::ranges::sort(group);
  }
  return groups;
}

}  // namespace speedo
