#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "store/redis/primary_watch.hpp"
#include "store/redis/redis_connection.hpp"

namespace speedo {

// The connections to one server; with Sentinels to whichever is the primary, as a watch finds out.
// Thread safety: all methods from any thread.
class RedisConnections {
 public:
  // `session`: already open, or null. `give_back`: see RedisConnection.
  RedisConnections(const RedisOptions& options, std::unique_ptr<RedisSession> session,
                   GiveBack give_back = nullptr);

  // The connection with the least to do takes it; a small one that would wait behind others has a
  // connection of its own kind. After stop_waiting() Sentinels are asked first.
  void submit(RedisTask task);
  void stop_waiting();
  // Whether nothing is queued, and nothing is being given back.
  bool is_idle();

 private:
  RedisConnection& small_connection();
  void follow(const NamedPrimary& primary);

  const RedisOptions options_;
  const GiveBack give_back_;
  const std::shared_ptr<std::atomic<std::uint64_t>> incarnations_;
  std::vector<std::unique_ptr<RedisConnection>> connections_;
  std::mutex mutex_;
  std::unique_ptr<RedisConnection> small_;  // made when it is needed; guarded by mutex_
  std::optional<NamedPrimary> primary_;     // the latest that was named; guarded by mutex_
  std::atomic<bool> hurried_{false};        // stop_waiting() was called
  std::unique_ptr<PrimaryWatch> watch_;     // null without Sentinels; last: it uses the others
};

}  // namespace speedo
