#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

namespace speedo {

// The oldest version that is used: the tests run with it.
inline constexpr int kRedisMajorMin = 5;

// Bytes; 0: it does not say.
struct RedisMemory {
  std::int64_t max = 0;  // maxmemory; 0 also: as much as its machine has
  std::int64_t used = 0;
  std::int64_t machine = 0;
};

// What a Redis server says of itself. Empty or nothing: it does not say, or may not.
struct RedisFacts {
  std::string version;               // "7.0.15"
  std::string policy;                // maxmemory-policy
  RedisMemory memory;
  bool is_open = false;              // a network reaches it, and it lets in whoever comes
  bool is_replica = false;           // which takes no writes
  bool is_loading = false;           // its data from disk; it answers nothing else until then
  bool cannot_save = false;          // to its disk: it takes no writes until it can
  int cluster_primaries = 0;         // of the Redis Cluster that it is a node of; 0: of none
  bool appends = false;              // every write goes into a file
  std::optional<std::string> saves;  // when it writes its data to disk ("" never)
};

// Asks the server, which may be of any policy. Blocking, for connect_timeout and command_timeout at
// most. Errors: kUnavailable, kTimeout, kRefused (password, permission), kConfig (a database that
// does not exist).
Result<RedisFacts> ask_redis(const RedisOptions& options);

// Its memory alone; nothing if the user may not ask. Blocking, and errors, likewise.
Result<std::optional<RedisMemory>> ask_redis_memory(const RedisOptions& options);

// The primaries of a Redis Cluster, by the first of `nodes` that knows them. Blocking. Errors: also
// kUnavailable for a cluster that does not serve all slots, kConfig for nodes of none.
Result<std::vector<RedisAddress>> ask_primaries(const std::vector<RedisOptions>& nodes);

}  // namespace speedo
