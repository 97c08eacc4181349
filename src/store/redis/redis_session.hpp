#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

struct redisContext;
struct redisReply;

namespace speedo {

// One authenticated connection, through hiredis: connecting and small commands that are waited for.
// After any error of a command the session is out of step: destroy it.
// Thread safety: one thread at a time.
class RedisSession {
 public:
  struct FreeReply {
    void operator()(redisReply* reply) const;
  };
  using Reply = std::unique_ptr<redisReply, FreeReply>;

  // Connects, sends AUTH and SELECT where asked for, and learns which server it is. `stale_client`:
  // the client id of an earlier connection of ours (0: none), which is closed on the server first,
  // so that what it may still have under way cannot take effect later.
  static Result<std::unique_ptr<RedisSession>> connect(const RedisOptions& options,
                                                       std::int64_t stale_client);
  ~RedisSession();
  RedisSession(const RedisSession&) = delete;
  RedisSession& operator=(const RedisSession&) = delete;

  // An error reply is an Error, see redis_error().
  Result<Reply> command(const std::vector<std::string>& arguments);

  int socket() const;
  std::uint64_t server() const { return server_; }  // changes when the server restarts
  std::int64_t client() const { return client_; }   // our id there; 0: not known

 private:
  RedisSession(redisContext* context, const RedisOptions& options);
  Result<void> open(std::int64_t stale_client);
  Result<void> identify_server();
  Error connection_error() const;

  redisContext* context_;
  const RedisOptions options_;
  const std::string where_;
  std::uint64_t server_ = 0;
  std::int64_t client_ = 0;
};

}  // namespace speedo
