#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/store/redis_store.hpp>

#include "store/redis/redis_session.hpp"

namespace speedo {

// What a Sentinel says.
struct NamedPrimary {
  RedisSentinel by;
  std::string host;
  int port = 0;
  std::uint64_t epoch = 0;         // of its configuration: a failover makes it higher
  bool is_being_replaced = false;  // a failover is under way, and this is not the new primary yet
};

// Asks Sentinels who the primary is while connections to it are open: one that was replaced by
// order stays a primary for these until the Sentinels demote it, and all that it takes is lost.
// Sentinels that are away are passed over. Thread safety: ask_at_end() from any thread.
class PrimaryWatch {
 public:
  using Take = std::function<void(const NamedPrimary&)>;
  // `take`: is told who the primary is each time that they are asked, by the Sentinel that knows of
  // the latest failover; on the watch's thread or in ask_at_end().
  PrimaryWatch(const RedisOptions& options, Take take);
  ~PrimaryWatch();

  // For a program that is about to end: asks at once, and again until a failover that is under way
  // has come to the new primary, for some seconds at most. Does so once.
  void ask_at_end();

 private:
  // What a Sentinel said last.
  struct Told {
    std::uint64_t epoch = 0;
    Instant at{};
  };

  void run();
  bool ask_all();
  std::uint64_t latest_epoch(std::size_t answers, Instant now) const;
  std::optional<NamedPrimary> ask(std::size_t sentinel);

  const RedisOptions options_;  // for sessions with Sentinels
  const Take take_;

  std::mutex asking_;
  std::vector<std::unique_ptr<RedisSession>> sessions_;  // one a Sentinel; guarded by asking_
  std::vector<Told> told_;                               // by each Sentinel; guarded by asking_
  std::string last_;                                     // that was named; guarded by asking_
  std::atomic<bool> has_ended_{false};

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;     // last: it uses all of the above
};

}  // namespace speedo
