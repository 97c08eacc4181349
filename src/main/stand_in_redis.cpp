#include "main/stand_in_redis.hpp"

#include <utility>

#include <speedo/store/redis_store.hpp>

#include "base/log.hpp"
#include "main/cluster_flags.hpp"

namespace speedo {

namespace {

// Whether a server accepts connections there; one that then refuses is one, too.
bool answers(const RedisOptions& where) {
  RedisOptions once = where;
  once.attempts_max = 1;
  const auto opened = open_redis_store(once, "probe");
  return opened || opened.error().code != ErrorCode::kUnavailable;
}

}  // namespace

Result<std::unique_ptr<PrivateRedis>> start_if_none_answers(const std::string& address) {
  SPEEDO_ASSIGN(const RedisOptions where, parse_redis_uri(address));
  std::unique_ptr<PrivateRedis> redis;
  if (answers(where)) return redis;
  auto started = PrivateRedis::start();
  if (!started) {
    return Error{started.error().code, "no Redis answers at " + address + " (--redis names another)"
                                       ", and a private one cannot be started: " +
                                           started.error().message};
  }
  redis = std::move(*started);
  SPEEDO_INFO("No Redis answers at {}: a private one is started, for workers on this machine. It "
              "ends with the master, whose checkpoints are files then; --redis names one that "
              "stays",
              address);
  return redis;
}

void warn_of_redis_out_of_reach(const std::string& address, const std::string& bind) {
  const auto where = parse_redis_uri(address);
  if (!where || is_loopback(bind)) return;
  const bool is_socket = !where->address.unix_path.empty();
  if (!is_socket && !is_loopback(where->address.host)) return;
  SPEEDO_WARN("Workers on other machines cannot reach Redis, which is {} of this machine alone. "
              "Let it listen where they are (redis-server --bind ADDRESS --requirepass PASSWORD) "
              "and give that address with --redis here, or with --redis at each worker",
              is_socket ? "a socket" : "at the loopback address");
}

}  // namespace speedo
