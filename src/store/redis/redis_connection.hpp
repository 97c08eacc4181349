#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <speedo/store/traffic_limit.hpp>

#include "base/note_interval.hpp"
#include "store/key_value.hpp"
#include "store/redis/primary_watch.hpp"
#include "store/redis/redis_request.hpp"
#include "store/redis/redis_session.hpp"
#include "store/redis/redis_task.hpp"
#include "store/redis/reply_reader.hpp"

namespace speedo {

// One connection to Redis and the thread that drives it: requests are pipelined, and sending and
// receiving go on at once, so that neither side can block the other.
//
// A connection that breaks, times out or answers that the server is not ready is made again, with
// back-off, and what had no answer is sent again: every operation is idempotent. After
// attempts_max failures in a row, or kStoreRetryTime of them, or one that no retry can mend,
// everything queued ends with it; so does all of a connection that there was no descriptor for
// (kFull). A connection to a cluster's node repeats nothing: it gives back
// what the node did not do, as another node may have to do it.
// Thread safety: submit() and load() from any thread.
class RedisConnection {
 public:
  struct Extras {
    LookUp look_up = ask_system;
    GiveBack give_back = nullptr;  // of a cluster's node; until the connection is gone
  };
  // `session`: already open, or null. `incarnations`: reconnections of all connections of one
  // store; tells incarnations of a server apart when it does not say its name.
  RedisConnection(const RedisOptions& options, std::unique_ptr<RedisSession> session,
                  std::shared_ptr<std::atomic<std::uint64_t>> incarnations, Extras extras);
  RedisConnection(const RedisOptions& options, std::unique_ptr<RedisSession> session,
                  std::shared_ptr<std::atomic<std::uint64_t>> incarnations)
      : RedisConnection(options, std::move(session), std::move(incarnations), Extras{}) {}
  ~RedisConnection();  // ends everything queued with kUnavailable

  void submit(KvPtr operation) { submit(RedisTask{.operation = std::move(operation)}); }
  void submit(RedisTask task);
  // See ParameterStore::stop_waiting(). From any thread.
  void stop_waiting();
  // If it is connected to another server, what follows goes to this one, and what has no answer.
  void follow(const NamedPrimary& primary);
  // Bytes not done. 0: nothing is queued, and nothing that is being given back.
  std::size_t load() const { return load_.load(std::memory_order_acquire); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Queued {
    RedisTask task;
    std::size_t bytes = 0;
    bool awaits_asking = false;       // the next reply is ASKING's
    std::optional<Error> no_asking;   // ASKING was refused: the error of the whole
    int doubts = 0;                   // refusals that were not believed
    KvOperation& operation() const { return *task.operation; }
  };

  void run();
  void take_submitted();
  void go_to_primary();
  void sleep_until(Clock::time_point time);
  void wait_for_socket();
  int poll_time(std::int64_t left_ms) const;
  void try_connect();
  void exchange();
  void encode_requests();
  bool send_some();
  bool receive_some();
  std::size_t allowed(TrafficLimit::Way way, std::span<iovec>& vectors);
  void used(TrafficLimit::Way way, std::size_t allowed, std::size_t done);
  bool take_replies();
  bool take_reply(const ReplyReader::Reply& reply);
  bool take_asking_reply(const ReplyReader::Reply& reply);
  bool doubts(const Error& error, int& so_far) const;
  std::optional<Error> error_in(const ReplyReader::Reply& reply, KvOperation& operation);
  void done_with_front(std::optional<Error> error);
  void drop_session();
  void connection_failed(Error error);
  bool is_one_server() const {
    return !options_.address.is_cluster && options_.address.primary.empty();
  }
  void give_back(Queued& entry, const RedisRefusal& refusal);
  void give_back_all(const Error& error);
  void warn_of(const Error& error);
  void drop_abandoned();
  void give_up(const Error& error);
  // Whether stop_waiting() was called, and until when an answer is waited for.
  bool is_hurried() const { return hurried_at_.load() != Clock::time_point{}; }
  Clock::time_point patience_end() const;
  void finish(Queued& entry, std::optional<Error> error) {
    load_.fetch_sub(entry.bytes, std::memory_order_release);
    entry.operation().complete(std::move(error));
  }
  Error broken(ErrorCode code, const std::string& what) const {
    return Error{code, "Redis at " + where_ + ": " + what};
  }

  RedisOptions options_;  // the thread's: Sentinels change their order
  const std::string where_;
  const Extras extras_;
  const std::shared_ptr<std::atomic<std::uint64_t>> incarnations_;
  const int wake_fd_;
  std::atomic<std::size_t> load_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<Clock::time_point> hurried_at_{};  // by the first stop_waiting(); zero: never

  std::mutex mutex_;
  std::deque<Queued> submitted_;         // guarded by mutex_
  std::optional<NamedPrimary> primary_;  // that was not looked at; guarded by mutex_

  // The thread's own.
  std::unique_ptr<RedisSession> session_;
  std::deque<Queued> waiting_;    // not sent
  std::deque<Queued> in_flight_;  // sent, at least in part; replies come in this order
  std::size_t in_flight_bytes_ = 0;
  std::deque<RedisRequest> sending_;
  std::vector<iovec> vectors_;
  ReplyReader replies_;
  // Until when a way has used up the limit; zero: it has not.
  std::array<Clock::time_point, 2> held_until_{};
  Clock::time_point last_progress_{};
  int failures_ = 0;  // in a row
  int doubts_ = 0;    // connections in a row whose refusal was not believed
  Clock::time_point first_failure_{};  // of those
  std::optional<Error> given_up_;      // for good
  NoteInterval warnings_;              // of a server that is away
  std::optional<RedisClient> stale_;
  std::optional<RedisSession::Known> known_;  // the primary that Sentinels named last
  std::uint64_t server_ = 0;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace speedo
