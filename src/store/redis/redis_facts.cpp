#include <speedo/store/redis_facts.hpp>

#include <string_view>

#include <hiredis/hiredis.h>

#include <speedo/base/assert.hpp>

#include "base/parse_number.hpp"
#include "store/redis/cluster_look_up.hpp"
#include "store/redis/node_checks.hpp"
#include "store/redis/redis_session.hpp"

namespace speedo {
namespace {

std::int64_t info_number(std::string_view info, std::string_view name) {
  return parse_number<std::int64_t>(info_value(info, name)).value_or(0);
}

std::string_view text_of_reply(const redisReply& reply) {
  const bool is_text = reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS;
  return is_text ? std::string_view(reply.str, reply.len) : std::string_view();
}

// A user of the access control lists may be kept from it.
std::optional<std::string> saves_of(RedisSession& session) {
  const auto reply = session.command({"CONFIG", "GET", "save"});
  if (!reply || (*reply)->type != REDIS_REPLY_ARRAY || (*reply)->elements != 2) return std::nullopt;
  return std::string(text_of_reply(*(*reply)->element[1]));
}

// 0 if it is a node of none; 1 of a cluster whose size it may not say.
int primaries_beside(RedisSession& session) {
  if (session.mode() != kClusterMode) return 0;
  const auto reply = session.command({"CLUSTER", "INFO"});
  if (!reply) return 1;
  return parse_number<int>(info_value(text_of_reply(**reply), "cluster_size")).value_or(1);
}

}  // namespace

Result<RedisFacts> ask_redis(const RedisOptions& options) {
  SPEEDO_ASSIGN(const std::unique_ptr<RedisSession> session,
                RedisSession::connect(options, std::nullopt));
  SPEEDO_ASSIGN(const RedisSession::Reply reply, session->command({"INFO"}));
  const std::string info(text_of_reply(*reply));
  RedisFacts facts;
  facts.version = info_value(info, "redis_version");
  facts.policy = info_value(info, "maxmemory_policy");
  facts.memory_max = info_number(info, "maxmemory");
  facts.memory_used = info_number(info, "used_memory");
  facts.machine_memory = info_number(info, "total_system_memory");
  facts.is_replica = info_value(info, "role") == "slave";
  facts.is_loading = info_value(info, "loading") == "1";
  facts.appends = info_value(info, "aof_enabled") == "1";
  facts.saves = saves_of(*session);
  facts.cluster_primaries = primaries_beside(*session);
  return facts;
}

Result<std::vector<RedisAddress>> ask_primaries(const std::vector<RedisOptions>& nodes) {
  SPEEDO_ASSERT(!nodes.empty());
  std::vector<RedisAddress> given;
  for (const RedisOptions& each : nodes) given.push_back(each.address);
  SPEEDO_ASSIGN(const SlotMap slots, learn_whole(nodes.front(), given));
  return slots.primaries();
}

}  // namespace speedo
