#include "cli/traffic_rate.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "base/parse_number.hpp"
#include "cli/options/number_unit.hpp"

namespace speedo {
namespace {

constexpr std::array<NumberUnit, 6> kRateUnits{{{"kbit", 1e3 / 8},
                                                {"Mbit", 1e6 / 8},
                                                {"Gbit", 1e9 / 8},
                                                {"kB", 1e3},
                                                {"MB", 1e6},
                                                {"GB", 1e9}}};

std::optional<double> rate_of(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  const auto factor = take_unit(text, kRateUnits);
  const auto number = parse_number<double>(text);
  if (!factor || !number || !std::isfinite(*number)) return std::nullopt;
  return *number * *factor;
}

}  // namespace

Result<double> parse_traffic_rate(const std::string& text) {
  const std::optional<double> rate = rate_of(text);
  if (rate && *rate >= kRateMin) return *rate;
  const std::string what = rate ? "is too little for a round ever to end"
                                : "is no rate";
  return usage_error("--max-rate " + text + " " + what +
                     ": give a number above 0 with its unit, kbit, Mbit, Gbit, kB, MB or GB (a "
                     "second), at least 10kB, as in 200Mbit; leave it out for no limit");
}

Result<std::shared_ptr<TrafficLimit>> traffic_limit(const std::string& max_rate) {
  if (max_rate.empty()) return std::shared_ptr<TrafficLimit>();
  SPEEDO_ASSIGN(const double rate, parse_traffic_rate(max_rate));
  return std::make_shared<TrafficLimit>(rate);
}

}  // namespace speedo
