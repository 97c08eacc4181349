#pragma once

#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// What a server was asked, as far as it is known.
struct RedisAsking {
  std::string_view user;     // empty: the default one
  std::string_view command;  // "SETEX"; of a master's script "EVAL"
  std::string_view key;      // the first; empty: of none
};

// An error reply ("WRONGPASS invalid ...", without the '-') of the server at `where`, with its kind
// and remedy. Transient kinds are those that a server leaves by itself or by a failover.
// A refusal names command, key and user.
Error redis_error(std::string_view reply, const std::string& where,
                  const RedisAsking& asking = {});

}  // namespace speedo
