#include "store/redis/node_checks.hpp"

#include <speedo/store/redis_facts.hpp>

#include "base/parse_number.hpp"
#include "store/redis/info_value.hpp"

namespace speedo {
namespace {

// Empty if the server does not know the command, or does not allow it.
Result<std::string> text_of_answer(RedisSession& session, const std::vector<std::string>& words) {
  const auto answer = session.command(words);
  if (!answer) {
    if (is_transient(answer.error().code)) return answer.error();
    return std::string();
  }
  return std::string(text_of(**answer));
}

Result<void> check_version(const RedisSession& session) {
  const std::string& version = session.version();
  const auto major = parse_number<int>(version.substr(0, version.find('.')));
  if (!major || *major >= kRedisMajorMin) return {};
  return Error{ErrorCode::kConfig, "Redis at " + session.where() + " has version " + version +
                                       ": use Redis " + std::to_string(kRedisMajorMin) +
                                       " or newer"};
}

Result<void> check_policy(RedisSession& session) {
  SPEEDO_ASSIGN(const std::string info, text_of_answer(session, {"INFO", "memory"}));
  const std::string policy = info_value(info, "maxmemory_policy");
  if (policy.empty() || policy == "noeviction") return {};
  return Error{ErrorCode::kConfig,
               "Redis at " + session.where() + " has maxmemory-policy " + policy +
                   ", which throws weights away when memory is short: CONFIG SET "
                   "maxmemory-policy noeviction"};
}

}  // namespace

Result<int> cluster_size(RedisSession& session) {
  if (session.mode() != kClusterMode) return 0;
  SPEEDO_ASSIGN(const std::string info, text_of_answer(session, {"CLUSTER", "INFO"}));
  return parse_number<int>(info_value(info, "cluster_size")).value_or(1);
}

Result<void> check_fitness(RedisSession& session) {
  SPEEDO_TRY(check_version(session));
  return check_policy(session);
}

Result<bool> lets_in_strangers(const RedisOptions& options, const RedisSession& session) {
  if (session.is_local()) return false;
  RedisOptions stranger = options;
  stranger.credentials = {};
  stranger.tls.certificate.clear();
  stranger.tls.key.clear();
  stranger.address = session.address();
  stranger.address.is_cluster = false;
  const auto let_in = RedisSession::connect(stranger, std::nullopt);
  if (let_in) return true;
  if (is_transient(let_in.error().code)) return let_in.error();
  return false;
}

Result<void> check_is_guarded(const RedisOptions& options, const RedisSession& session) {
  if (options.may_be_open) return {};
  SPEEDO_ASSIGN(const bool is_open, lets_in_strangers(options, session));
  if (!is_open) return {};
  return Error{ErrorCode::kRefused,
               "Redis at " + session.where() + " asks for no password, and more than this machine "
                   "reaches it: set one (requirepass, or conf/redis-acl.conf) and give "
                   "--redis-password-file FILE, or --insecure-redis if all there may read and "
                   "change everything"};
}

Result<void> check_is_alone(RedisSession& session) {
  SPEEDO_ASSIGN(const int primaries, cluster_size(session));
  if (primaries <= 1) return {};
  return Error{ErrorCode::kConfig,
               "Redis at " + session.where() + " is a node of a Redis Cluster of " +
                   std::to_string(primaries) + " primaries: give redis-cluster://" +
                   session.where()};
}

Result<void> check_cluster_state(RedisSession& session) {
  SPEEDO_ASSIGN(const std::string info, text_of_answer(session, {"CLUSTER", "INFO"}));
  const std::string state = info_value(info, "cluster_state");
  if (state.empty() || state == "ok") return {};
  return Error{ErrorCode::kUnavailable,
               "Redis at " + session.where() + " says cluster_state:" + state + ", with " +
                   info_value(info, "cluster_slots_ok") + " of 16384 slots served: see "
                   "redis-cli --cluster check " + session.where()};
}

}  // namespace speedo
