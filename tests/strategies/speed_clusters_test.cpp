#include <algorithm>
#include <cmath>
#include <limits>

#include "support/catch.hpp"

#include "strategies/speed_clusters.hpp"

#include "random_events.hpp"

namespace speedo {

namespace {

using Speeds = std::map<WorkerId, double>;
using Clusters = std::vector<std::vector<WorkerId>>;

Speeds speeds_of(std::initializer_list<double> values) {
  Speeds speeds;
  for (const double value : values) speeds[{speeds.size()}] = value;
  return speeds;
}

double cost_of(const std::vector<double>& logs) {
  double mean = 0.0;
  for (const double log : logs) mean += log / static_cast<double>(logs.size());
  double cost = 0.0;
  for (const double log : logs) cost += (log - mean) * (log - mean);
  return cost;
}

double width_of(const Speeds& speeds, const std::vector<WorkerId>& group) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0.0;
  for (const WorkerId worker : group) {
    low = std::min(low, speeds.at(worker));
    high = std::max(high, speeds.at(worker));
  }
  return high / low;
}

// The least cost of `count` groups, by trying every set of cuts.
double least_cost(const Speeds& speeds, std::size_t count) {
  std::vector<double> logs;
  for (const auto& [worker, speed] : speeds) logs.push_back(std::log(speed));
  std::ranges::sort(logs);
  double least = std::numeric_limits<double>::infinity();
  for (unsigned cuts = 0; cuts < 1U << (logs.size() - 1); ++cuts) {
    double cost = 0.0;
    std::size_t groups = 0;
    std::vector<double> group;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      group.push_back(logs[i]);
      if (i + 1 < logs.size() && (cuts >> i & 1U) == 0) continue;
      cost += cost_of(group);
      group.clear();
      ++groups;
    }
    if (groups == count) least = std::min(least, cost);
  }
  return least;
}

double cost_of(const Speeds& speeds, const Clusters& clusters) {
  double cost = 0.0;
  for (const auto& cluster : clusters) {
    std::vector<double> logs;
    for (const WorkerId worker : cluster) logs.push_back(std::log(speeds.at(worker)));
    cost += cost_of(logs);
  }
  return cost;
}

}  // namespace

TEST_CASE("workers of two speeds make two groups, the slow ones first") {
  const Speeds speeds = speeds_of({10.0, 1.0, 11.0, 1.1, 10.5});
  const Clusters expected = {{{1}, {3}}, {{0}, {2}, {4}}};
  CHECK(cluster_speeds(speeds, 0) == expected);
  CHECK(cluster_speeds(speeds, 2) == expected);
}

TEST_CASE("workers of nearly one speed make one group, unless more are asked for") {
  const Speeds speeds = speeds_of({1.0, 1.2, 1.1});
  CHECK(cluster_speeds(speeds, 0).size() == 1);
  CHECK(cluster_speeds(speeds, 2).size() == 2);
  CHECK(cluster_speeds(speeds, 3).size() == 3);
  CHECK(cluster_speeds(speeds, 9).size() == 3);
  CHECK(cluster_speeds({}, 0).empty());
  CHECK(cluster_speeds(speeds_of({2.0}), 0) == Clusters{{{0}}});
}

TEST_CASE("clusters are the best of all, and no more than needed") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t random) -> std::string {
    Speeds speeds;
    for (const std::uint32_t each : randoms) {
      if (speeds.size() < 8) speeds[{speeds.size()}] = 1.0 + each % 1000 / (1.0 + each % 7);
    }
    if (speeds.empty()) return {};
    const std::uint64_t count = random % 5;
    const Clusters clusters = cluster_speeds(speeds, count);
    std::size_t members = 0;
    double before = 0.0;
    for (const auto& cluster : clusters) {
      members += cluster.size();
      for (const WorkerId worker : cluster) {
        if (speeds.at(worker) < before) return "groups overlap";
      }
      for (const WorkerId worker : cluster) before = std::max(before, speeds.at(worker));
      if (count == 0 && width_of(speeds, cluster) > kSpeedSpread * (1 + 1e-9)) return "too wide";
    }
    if (members != speeds.size()) return "somebody is missing";
    if (count > 0 && clusters.size() != std::min<std::size_t>(count, members)) return "wrong count";
    if (std::abs(cost_of(speeds, clusters) - least_cost(speeds, clusters.size())) > 1e-9) {
      return "not the best";
    }
    if (count > 0 || clusters.size() == 1) return {};
    for (const auto& wider : cluster_speeds(speeds, clusters.size() - 1)) {
      if (width_of(speeds, wider) > kSpeedSpread * (1 - 1e-9)) return {};
    }
    return "one group less would do";
  }));
}

}  // namespace speedo
