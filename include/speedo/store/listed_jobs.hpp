#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

namespace speedo {

// A job that servers hold something of (store/layout.hpp).
struct ListedJob {
  std::string name;
  std::size_t keys = 0;     // on these servers, its mastership's aside
  bool has_master = false;  // somebody holds its lease
};

// The jobs with keys on these servers, or on the primaries of the Redis Cluster that they are nodes
// of, by name. Goes through all of SpeeDO's keys, without holding a server up; blocking. Errors: as
// open_redis_store(). Requires: one or more servers.
Result<std::vector<ListedJob>> list_jobs(const std::vector<RedisOptions>& servers);

}  // namespace speedo
