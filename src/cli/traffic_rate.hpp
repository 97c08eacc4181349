#pragma once

#include <memory>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/traffic_limit.hpp>

namespace speedo {

// Reads a rate with its unit, "200Mbit" or "25MB", with "/s" behind it or not: bits by kbit, Mbit,
// Gbit, bytes by kB, MB, GB, thousands each; bytes a second. From kRateMin on. Error: kUsage,
// saying what is allowed.
Result<double> parse_traffic_rate(const std::string& text);

// Of so little no round would ever end.
inline constexpr double kRateMin = 10e3;

// Of --max-rate; null if it is empty.
Result<std::shared_ptr<TrafficLimit>> traffic_limit(const std::string& max_rate);

}  // namespace speedo
