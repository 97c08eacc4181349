#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/store/redis_facts.hpp>

#include "doctor/finding.hpp"
#include "measure/store_need.hpp"

namespace speedo {

// Of a server's memory that its allocator and its clients' buffers take beside the values.
inline constexpr double kRedisOverhead = 1.1;

// "redis memory": whether a server has room for a job's need. A problem: even when it is empty it
// has not for the least. A warning: not for all, beside what it holds, which may be what an earlier
// run of the job has left. Ok, too, if it does not say, and that it was not checked.
Finding judge_room(const RedisMemory& memory, const StoreNeed& need);

// Asks the servers, or the primaries of the Redis Cluster that they are nodes of, each for its
// share. The worst finding, which names its server if there are several. Requires: one or more.
Finding check_room(const std::vector<RedisOptions>& servers, const StoreNeed& need);

}  // namespace speedo
