#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/key_value.hpp"
#include "store/redis/redis_connections.hpp"

namespace speedo {

// A KeyValue in Redis over several connections.
class RedisKeyValue : public KeyValue {
 public:
  // Connects and checks the server, with retries. Errors: see open_redis_store().
  static Result<std::shared_ptr<RedisKeyValue>> open(const RedisOptions& options);

  void submit(KvPtr operation) override;
  // Goes through the keys with SCAN, which does not hold up the server.
  Result<std::vector<std::string>> list(std::string_view prefix) override;
  void stop_waiting() override;

 private:
  using Clock = std::chrono::steady_clock;

  RedisKeyValue(const RedisOptions& options, std::unique_ptr<RedisSession> session);

  const RedisOptions options_;
  std::atomic<Clock::time_point> hurried_at_{};  // by the first stop_waiting(); zero: never
  RedisConnections connections_;
};

}  // namespace speedo
