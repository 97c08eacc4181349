#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "store/key_value.hpp"
#include "store/redis/redis_connections.hpp"
#include "store/redis/redis_task.hpp"
#include "store/redis/slot_map.hpp"

namespace speedo {

// A KeyValue on a Redis Cluster: each operation goes to the primary that has the slot of its keys,
// which must all have one hash tag.
//
// A thread of its own takes what nodes did not do: it follows MOVED and ASK, waits and tries again
// after TRYAGAIN, CLUSTERDOWN and connections that broke, and learns anew who has which slot.
// After attempts_max failures of an operation, or kStoreRetryTime of them, it ends with the last.
class ClusterKeyValue : public KeyValue {
 public:
  // What nodes answered so far instead of doing what they were asked.
  struct Counts {
    std::uint64_t moved = 0, asked = 0, try_again = 0, down = 0;
    std::uint64_t broken = 0;   // operations that a connection broke under
    std::uint64_t learned = 0;  // times that the slots were learned anew
  };

  // `nodes`: some of the cluster, the first one's options for all. Connects to every primary and
  // checks it, with retries. Errors: see open_redis_store(). Requires: one or more.
  static Result<std::shared_ptr<ClusterKeyValue>> open(const std::vector<RedisOptions>& nodes);
  ~ClusterKeyValue() override;  // ends everything queued with kUnavailable

  void submit(KvPtr operation) override;
  Result<std::vector<std::string>> list(std::string_view prefix) override;
  void stop_waiting() override;
  Counts counts() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Refused {
    RedisTask task;
    RedisRefusal refusal;
  };

  ClusterKeyValue(const std::vector<RedisOptions>& nodes, SlotMap slots);
  RedisConnections& node_at(const RedisAddress& address, std::unique_ptr<RedisSession> session);
  void give_back(RedisTask task, const RedisRefusal& refusal);
  void submit_locked(RedisTask task);

  void run();
  std::deque<Refused> wait_for_refused();
  void handle(Refused& refused);
  void send_to(RedisTask task, const RedisAddress& node, const Error& error);
  void fail(RedisTask task, Error error);
  void learn();
  std::vector<RedisAddress> nodes_to_ask() const;
  void take_slots(SlotMap slots);
  void resubmit_due();
  bool has_no_patience() const;
  void end(const RedisTask& task, const Error& error);
  Error unavailable(const std::string& what) const;

  const RedisOptions options_;  // of every node, but for the address
  const std::vector<RedisAddress> given_;
  const std::string where_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  SlotMap slots_;
  std::map<std::string, std::unique_ptr<RedisConnections>> nodes_;  // by host and port
  std::deque<Refused> refused_;
  bool stopping_ = false;
  std::optional<Clock::time_point> hurried_at_;
  Counts counts_;

  // The thread's own.
  std::multimap<Clock::time_point, RedisTask> waiting_;  // until when
  bool is_stale_ = false;                                // the slots are to be learned
  bool has_moved_ = false;                               // a slot, since they were learned
  std::optional<RedisAddress> hint_;                     // who knows them best
  std::optional<RedisAddress> broken_;                   // who is asked last
  Clock::time_point learn_at_{};                         // not earlier
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace speedo
