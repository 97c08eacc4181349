#pragma once

#include <cstdint>
#include <vector>

#include <speedo/store/redis_facts.hpp>

#include "doctor/finding.hpp"

namespace speedo {

// Asks the server at an address: "redis" (whether it answers, lets us in and may be written), and
// judge_redis().
Findings check_redis(const RedisOptions& options, std::int64_t needed_bytes);

// The same of several, or of the primaries of a Redis Cluster, of which `servers` are nodes ("redis
// cluster": whether it serves all slots). Of each check the worst finding, which names its server.
// `needed_bytes`: on all of them together. Requires: one or more.
Findings check_store(const std::vector<RedisOptions>& servers, std::int64_t needed_bytes);

// "redis version", "redis access" (whether it lets in whoever comes), "redis policy",
// "redis memory" (whether a job that stores so much has room; 0: not known), "redis persistence".
Findings judge_redis(const RedisFacts& facts, std::int64_t needed_bytes);

}  // namespace speedo
