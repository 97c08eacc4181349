#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/store/redis_facts.hpp>

#include "doctor/finding.hpp"
#include "measure/store_need.hpp"

namespace speedo {

// The most memory that a server may have, and what says so; 0: it is unknown.
struct RedisLimit {
  std::int64_t most = 0;
  const char* name = "";  // "maxmemory", "its machine has"
};
RedisLimit limit_of(const RedisMemory& memory);

// "redis memory": whether a server has room for a job's need. A problem: even when it is empty it
// has not for the least. A warning: not for all, beside what it holds, which may be what an earlier
// run of the job has left. Ok, too, if it does not say, and that it was not checked.
Finding judge_room(const RedisMemory& memory, const StoreNeed& need);

// Asks the servers, or the primaries of the Redis Cluster that they are nodes of, each for its
// share. The worst finding, which names its server if there are several. Requires: one or more.
Finding check_room(const std::vector<RedisOptions>& servers, const StoreNeed& need);

}  // namespace speedo
