#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "store/key_value.hpp"
#include "store/redis/redis_connection.hpp"

namespace speedo {

// A KeyValue in Redis over several connections.
class RedisKeyValue : public KeyValue {
 public:
  // Connects and checks the server, with retries. Errors: see open_redis_store().
  static Result<std::shared_ptr<RedisKeyValue>> open(const RedisOptions& options);

  // The connection with the least to do takes it; a small one that would wait behind others has a
  // connection of its own kind.
  void submit(KvPtr operation) override;
  // Goes through the keys with SCAN, which does not hold up the server.
  Result<std::vector<std::string>> list(std::string_view prefix) override;
  void stop_waiting() override;

 private:
  RedisKeyValue(const RedisOptions& options, std::unique_ptr<RedisSession> session);

  RedisConnection& small_connection();

  const RedisOptions options_;
  const std::shared_ptr<std::atomic<std::uint64_t>> incarnations_;
  std::vector<std::unique_ptr<RedisConnection>> connections_;
  std::mutex mutex_;
  std::unique_ptr<RedisConnection> small_;  // made when it is needed; guarded by mutex_
  bool hurried_ = false;                    // stop_waiting() was called; guarded by mutex_
};

}  // namespace speedo
