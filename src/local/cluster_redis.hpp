#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>

#include "local/children.hpp"
#include "local/private_redis.hpp"

namespace speedo {

// Restarts of a redis-server that dies again and again; one that has lived well has all of them.
inline constexpr int kRedisRestartsMax = 3;

// The redis-servers of a cluster. One of its own that dies is started again at the same place,
// empty: a master that lives publishes its job and its weights again.
// Thread safety: one thread, that of the children.
class ClusterRedis {
 public:
  // `children` outlives it.
  explicit ClusterRedis(Children& children) : children_(children) {}

  // Starts those that are the cluster's own, one after another, and waits until each answers.
  // Errors: kUnavailable, also if one ends meanwhile. Requires: there are no other children yet.
  Result<void> start(std::vector<RedisPlace> places);
  std::string uris() const;  // of all, with commas between them
  const RedisPlace& first() const { return servers_.front().place; }

  bool has(pid_t pid) const;
  // One of them has ended, and is to be started again. Error kUnavailable: it has been too often.
  Result<void> take_end(const ChildEnd& end);
  // Starts those whose time has come. Errors: as take_end().
  Result<void> restart_due();

 private:
  struct Server {
    RedisPlace place;
    pid_t pid = 0;
    Instant begun{};
    int restarts = 0;  // in a row
    std::optional<Instant> due = {};
  };
  Result<void> start(Server& server);
  static Result<void> plan_restart(Server& server, const std::string& what);

  Children& children_;
  std::vector<Server> servers_;
};

}  // namespace speedo
