#include "train/session/shard_ratios.hpp"

#include <algorithm>
#include <cmath>

#include <speedo/base/limits.hpp>

#include "train/session/host_quarantine.hpp"

namespace speedo {

double ShardRatios::ratio_of(const std::string& name) const {
  auto found = ratios_.find(name);
  if (found == ratios_.end()) found = ratios_.find(host_of(name));
  return found == ratios_.end() ? 1.0 : found->second;
}

std::set<std::string> ShardRatios::names() const {
  std::set<std::string> names;
  for (const auto& [name, ratio] : ratios_) names.insert(name);
  return names;
}

std::uint64_t ShardRatios::next(WorkerId worker, const std::string& name) {
  constexpr double kWhole = 1e-6;  // sums of fractions are a little less than whole
  double& owed = owed_[worker];
  owed += ratio_of(name);
  const double whole =
      std::clamp(std::floor(owed + kWhole), 1.0, static_cast<double>(kShardsPerRunMax));
  owed = std::max(0.0, owed - whole);
  return static_cast<std::uint64_t>(whole);
}

}  // namespace speedo
