#include <speedo/store/redis_facts.hpp>

#include <string_view>

#include <hiredis/hiredis.h>

#include <speedo/base/assert.hpp>

#include "base/parse_number.hpp"
#include "store/redis/cluster_look_up.hpp"
#include "store/redis/info_value.hpp"
#include "store/redis/node_checks.hpp"
#include "store/redis/redis_session.hpp"

namespace speedo {
namespace {

std::int64_t info_number(std::string_view info, std::string_view name) {
  return parse_number<std::int64_t>(info_value(info, name)).value_or(0);
}

RedisMemory memory_in(std::string_view info) {
  return {.max = info_number(info, "maxmemory"),
          .used = info_number(info, "used_memory"),
          .machine = info_number(info, "total_system_memory")};
}

// A user of the access control lists may be kept from it.
std::optional<std::string> saves_of(RedisSession& session) {
  const auto reply = session.command({"CONFIG", "GET", "save"});
  if (!reply || (*reply)->type != REDIS_REPLY_ARRAY || (*reply)->elements != 2) return std::nullopt;
  return std::string(text_of(*(*reply)->element[1]));
}

// It says so to a PING, which needs no rights.
bool refuses_for_its_disk(RedisSession& session) {
  const auto pong = session.command({"PING"});
  return !pong && pong.error().code == ErrorCode::kCannotWrite;
}

}  // namespace

Result<RedisFacts> ask_redis(const RedisOptions& options) {
  SPEEDO_ASSIGN(const std::unique_ptr<RedisSession> session,
                RedisSession::connect(options, std::nullopt));
  SPEEDO_ASSIGN(const RedisSession::Reply reply, session->command({"INFO"}));
  const std::string info(text_of(*reply));
  RedisFacts facts;
  facts.version = info_value(info, "redis_version");
  facts.policy = info_value(info, "maxmemory_policy");
  facts.memory = memory_in(info);
  facts.is_replica = info_value(info, "role") == "slave";
  facts.is_loading = info_value(info, "loading") == "1";
  facts.appends = info_value(info, "aof_enabled") == "1";
  facts.cannot_save = refuses_for_its_disk(*session);
  facts.saves = saves_of(*session);
  SPEEDO_ASSIGN(facts.is_open, lets_in_strangers(options, *session));
  const auto primaries = cluster_size(*session);
  facts.cluster_primaries = primaries ? *primaries : 1;
  return facts;
}

Result<std::optional<RedisMemory>> ask_redis_memory(const RedisOptions& options) {
  SPEEDO_ASSIGN(const std::unique_ptr<RedisSession> session,
                RedisSession::connect(options, std::nullopt));
  const auto reply = session->command({"INFO", "memory"});
  if (reply) return std::optional(memory_in(text_of(**reply)));
  if (reply.error().code == ErrorCode::kRefused) return std::optional<RedisMemory>();
  return reply.error();
}

Result<std::vector<RedisAddress>> ask_primaries(const std::vector<RedisOptions>& nodes) {
  SPEEDO_ASSERT(!nodes.empty());
  SPEEDO_ASSIGN(const SlotMap slots, learn_whole(nodes.front(), addresses_of(nodes)));
  return slots.primaries();
}

}  // namespace speedo
