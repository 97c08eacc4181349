#include "store/redis/key_scan.hpp"

#include <hiredis/hiredis.h>

#include <cstddef>

namespace speedo {
namespace {

constexpr const char* kScanCount = "1000";

std::string escape_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("*?[]\\^").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace

Result<std::vector<std::string>> scan_keys(RedisSession& session, std::string_view prefix) {
  const std::string pattern = escape_pattern(prefix) + "*";
  std::vector<std::string> keys;
  std::string cursor = "0";
  do {
    SPEEDO_ASSIGN(const RedisSession::Reply reply,
                  session.command({"SCAN", cursor, "MATCH", pattern, "COUNT", kScanCount}));
    const bool expected = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                          reply->element[0]->type == REDIS_REPLY_STRING &&
                          reply->element[1]->type == REDIS_REPLY_ARRAY;
    if (!expected) return Error{ErrorCode::kInternal, "Redis answered SCAN in an unknown form"};
    cursor.assign(reply->element[0]->str, reply->element[0]->len);
    for (std::size_t i = 0; i < reply->element[1]->elements; ++i) {
      const redisReply& key = *reply->element[1]->element[i];
      keys.emplace_back(key.str, key.len);
    }
  } while (cursor != "0");
  return keys;
}

}  // namespace speedo
