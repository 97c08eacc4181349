#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "store/redis/redis_connection.hpp"

namespace speedo {

// The connections to one server. Thread safety: all methods from any thread.
class RedisConnections {
 public:
  // `session`: already open, or null. `give_back`: see RedisConnection.
  RedisConnections(const RedisOptions& options, std::unique_ptr<RedisSession> session,
                   GiveBack give_back = nullptr);

  // The connection with the least to do takes it; a small one that would wait behind others has a
  // connection of its own kind.
  void submit(RedisTask task);
  void stop_waiting();
  // Whether nothing is queued, and nothing is being given back.
  bool is_idle();

 private:
  RedisConnection& small_connection();

  const RedisOptions options_;
  const GiveBack give_back_;
  const std::shared_ptr<std::atomic<std::uint64_t>> incarnations_;
  std::vector<std::unique_ptr<RedisConnection>> connections_;
  std::mutex mutex_;
  std::unique_ptr<RedisConnection> small_;  // made when it is needed; guarded by mutex_
  bool hurried_ = false;                    // stop_waiting() was called; guarded by mutex_
};

}  // namespace speedo
