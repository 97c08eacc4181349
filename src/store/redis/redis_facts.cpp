#include <speedo/store/redis_facts.hpp>

#include <string_view>

#include <hiredis/hiredis.h>

#include "base/parse_number.hpp"
#include "store/redis/redis_session.hpp"

namespace speedo {
namespace {

// Of a line "NAME:VALUE" of INFO's answer.
std::string info_value(std::string_view info, std::string_view name) {
  for (std::size_t at = 0; at < info.size();) {
    const std::size_t end = std::min(info.find_first_of("\r\n", at), info.size());
    const std::string_view line = info.substr(at, end - at);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
      return std::string(line.substr(name.size() + 1));
    }
    at = end + 1;
  }
  return "";
}

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
  return facts;
}

}  // namespace speedo
