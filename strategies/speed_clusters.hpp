#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <speedo/base/ids.hpp>

namespace speedo {

// Cuts workers into groups of similar speed. Exactly `count` groups, or one for each worker if
// those are fewer; for 0 the fewest whose fastest member is at most kSpeedSpread times as fast as
// its slowest. The slowest group comes first, members ascend by number. Speeds are positive.
inline constexpr double kSpeedSpread = 1.25;
std::vector<std::vector<WorkerId>> cluster_speeds(const std::map<WorkerId, double>& speeds,
                                                  std::uint64_t count);

}  // namespace speedo
