#include "local/stand_in_redis.hpp"

#include <algorithm>
#include <utility>

#include <speedo/store/redis_store.hpp>

#include "base/log.hpp"

namespace speedo {

namespace {

// What tells that a Redis of the user's own is meant, as the subject of a sentence; empty: nothing.
std::string reason_for_own(const ClusterFlags& flags, const ProcessSecrets& secrets) {
  if (flags.resume == kResumeNewest) return "--resume=auto goes on from what it has";
  if (!flags.redis_password_file.empty()) return "--redis-password-file is for one";
  if (flags.redis_tls.any()) return "--redis-tls-ca, -cert and -key are for one";
  if (!secrets.environment.password.empty()) return std::string(kPasswordVariable) + " is for one";
  if (!secrets.environment.user.empty()) return std::string(kUsernameVariable) + " is for one";
  return "";
}

Error nobody_there(const std::string& address, const std::string& reason) {
  return Error{ErrorCode::kUnavailable,
               "no Redis answers at " + address + ", and " + reason +
                   ": start it or name another with --redis. (Without --resume=auto and "
                   "credentials a private one is started; --resume=FILE.speedo goes on with it)"};
}

Result<std::unique_ptr<PrivateRedis>> start_private(const std::string& address) {
  auto started = PrivateRedis::start();
  if (!started) {
    return Error{started.error().code, "no Redis answers at " + address +
                                           " (--redis names another)"
                                           ", and a private one cannot be started: " +
                                           started.error().message};
  }
  SPEEDO_INFO(
      "No Redis answers at {}: a private one is started, for workers on this machine. It "
      "ends with the master, whose checkpoints are files then; --redis names one that "
      "stays",
      address);
  return started;
}

}  // namespace

Result<std::unique_ptr<PrivateRedis>> find_redis(ClusterFlags& flags, bool is_named,
                                                 const ProcessSecrets& secrets) {
  std::unique_ptr<PrivateRedis> own;
  if (is_named || flags.resume == kResumeFromStore) return own;
  SPEEDO_ASSIGN(const RedisAddress where, parse_redis_address(flags.redis));
  if (is_somebody_at(where)) return own;
  const std::string reason = reason_for_own(flags, secrets);
  if (!reason.empty()) return nobody_there(flags.redis, reason);
  SPEEDO_ASSIGN(own, start_private(flags.redis));
  flags.redis = own->uri();
  return own;
}

void warn_of_redis_out_of_reach(const std::string& address, const std::string& bind) {
  const auto all = parse_redis_addresses(address);
  if (!all || is_loopback(bind)) return;
  const auto where = std::find_if(all->begin(), all->end(), [](const RedisAddress& each) {
    return !each.unix_path.empty() || is_loopback(each.host);
  });
  if (where == all->end()) return;
  const bool is_socket = !where->unix_path.empty();
  SPEEDO_WARN(
      "Workers on other machines cannot reach Redis, which is {} of this machine alone. "
      "Let it listen where they are (redis-server --bind ADDRESS --requirepass PASSWORD) "
      "and give that address with --redis here, or with --redis at each worker",
      is_socket ? "a socket" : "at the loopback address");
}

}  // namespace speedo
