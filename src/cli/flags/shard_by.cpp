#include "cli/flags/shard_by.hpp"

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "base/parse_number.hpp"
#include "cli/net_inputs.hpp"

namespace speedo {

Result<ShardBy> parse_shard_by(const std::string& text) {
  ShardBy by;
  by.speed = text == "speed";
  if (by.speed || text == "equal") return by;
  const auto refused = [&](const std::string& what) {
    return usage_error(
        fmt::format("--shard-by {}: {}; it takes equal, speed, or NAME=R,... with "
                    "ratios from 1 to {}",
                    text, what, kShardsPerRunMax));
  };
  for (const std::string& part : split_at_commas(text)) {
    const std::size_t equals = part.rfind('=');
    if (equals == std::string::npos || equals == 0) return refused("'" + part + "' is no NAME=R");
    const auto ratio = parse_number<double>(part.substr(equals + 1));
    if (!ratio || !(*ratio >= 1.0 && *ratio <= static_cast<double>(kShardsPerRunMax))) {
      return refused("'" + part.substr(equals + 1) + "' is no such ratio");
    }
    if (!by.ratios.emplace(part.substr(0, equals), *ratio).second) {
      return refused("'" + part.substr(0, equals) + "' has two ratios");
    }
  }
  if (by.ratios.empty()) return refused("there is no name");
  return by;
}

}  // namespace speedo
