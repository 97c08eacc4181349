#pragma once

#include <map>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// What shares of a round workers get, --shard-by.
struct ShardBy {
  bool speed = false;
  std::map<std::string, double> ratios;  // by worker or host, see MasterConfig

  bool is_equal() const { return !speed && ratios.empty(); }
};

// "equal", "speed" or "NAME=R,...". Error: kUsage.
Result<ShardBy> parse_shard_by(const std::string& text);

}  // namespace speedo
