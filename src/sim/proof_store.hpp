#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>

#include "sim/event_queue.hpp"
#include "sim/fault_ledger.hpp"
#include "sim/process_platform.hpp"
#include "store/key_value.hpp"
#include "store/memory_key_value.hpp"

namespace speedo::sim {

// What a restarted store server still has.
enum class Survives { kAll, kAllButLastSecond, kNothing };

// The store's server: a map that may be down, and come back with less than it had.
class StoreServer {
 public:
  explicit StoreServer(EventQueue& queue) : queue_(queue), map_(queue) {}

  bool up() const { return queue_.now() >= up_at_; }
  // Keeps what is there now, for a restart that loses what comes after.
  void remember() { image_ = map_.image(); }
  // `mark` feels it if data are lost, or if somebody meets the server while it is down.
  void restart(Survives what, Instant down_time, const FaultMark& mark = {});
  // The same within the client operation that comes so many after this; `strike` is called then.
  void restart_at_operation(std::uint64_t count, Survives what, std::function<void()> strike);
  void cancel_restart() { restart_.reset(); }
  // A bit of the next contribution that is stored flips, of a chunk or of its manifest; `damaged`
  // is told the key.
  void damage_next_contribution(std::function<void(const std::string& key)> damaged) {
    damaged_ = std::move(damaged);
  }

  // The same bit of what is stored under this key now, forth or back; false if nothing is.
  bool flip_bit(const std::string& key);

  // Executes, up or not.
  void execute(const KvPtr& operation);
  MemoryKeyValue& map() { return map_; }
  std::uint64_t incarnation() const { return map_.incarnation(); }

  // Writes by masters are then executed whoever has the job: a broken store, for tests.
  bool ignores_fences = false;
  // Called after each operation that took effect, before anything is damaged.
  std::function<void(const KvOperation&)> on_done;
  std::function<void(bool lost_data)> on_restart;

 private:
  friend class StoreClient;
  struct Restart {
    std::uint64_t countdown;
    Survives what;
    std::function<void()> strike;
  };
  bool come_back_with(MemoryImage survivors);
  EventQueue& queue_;
  MemoryKeyValue map_;
  MemoryImage image_;
  Instant up_at_{0};
  std::optional<Restart> restart_;
  FaultMark down_;  // of the fault that it is down for
  void damage(const std::string& key);
  std::function<void(const std::string&)> damaged_;
};

// One process' way to the server, which takes time, and tries again for a while if it is closed, as
// the real client does. Faults strike within operations, so also in the midst of a merge or a put.
class StoreClient : public KeyValue {
 public:
  // `mean_time`: of an operation.
  StoreClient(StoreServer& server, ProcessPlatform& platform, std::uint64_t seed,
              Instant mean_time = Instant{0})
      : server_(server), platform_(platform), random_(seed), mean_time_(mean_time) {}

  // Stops the thread that calls for as long as it takes; outside of the platform's threads it takes
  // no time.
  void submit(KvPtr operation) override;
  Result<std::vector<std::string>> list(std::string_view prefix) override;
  void stop_waiting() override { stops_waiting_ = true; }

  // A partition, and its end.
  void disconnect(const FaultMark& mark) { partition_ = mark; }
  void connect() { partition_.reset(); }
  struct Faults {
    double error = 0.0;   // chance of an operation to fail for good, with or without effect
    double repeat = 0.0;  // to be executed twice
    FaultMark mark;
  };
  void set_faults(const Faults& faults) { faults_ = faults; }
  // At the operation that comes so many after this, with or without its effect, `strike` is called:
  // it kills the process, or stops it and lets the world go on without it.
  using Strike = std::function<void(const KvOperation& operation)>;
  void strike_at_operation(std::uint64_t count, Strike strike);
  void cancel_strike() { strike_ = nullptr; }
  // The same, of a process' ways to several servers: whichever comes to it. It strikes once.
  struct StrikePlan {
    std::uint64_t countdown = 0;
    std::string set_key = {};  // not empty: at the setting of this key instead
    Strike strike;
  };
  void set_strike(std::shared_ptr<StrikePlan> plan) { strike_ = std::move(plan); }
  bool is_connected() const { return !partition_; }
  // Operations so far that did not get through, or whose answer did not.
  std::uint64_t failures() const { return failures_; }
  // Called after each operation of this client that the server has executed.
  std::function<void(const KvOperation&)> on_executed;
  // Called after each of them whose answer the client does not get.
  std::function<void(const KvOperation&)> on_unanswered;

 private:
  // Whether an operation begun now would get through. Who asks, and hears no, feels the fault.
  bool reachable() const;
  bool reach();
  void take_time();
  void execute(const KvPtr& operation);
  bool is_struck_next(const KvOperation& operation) const;
  bool strike_now(const KvOperation& operation);
  void execute_at_server(const KvPtr& operation);
  void fail(const KvPtr& operation, bool was_executed);
  bool alive() const { return platform_.process().alive(); }

  StoreServer& server_;
  ProcessPlatform& platform_;
  Random random_;
  const Instant mean_time_;
  std::optional<Instant> used_at_;
  bool stops_waiting_ = false;
  std::uint64_t failures_ = 0;
  std::optional<FaultMark> partition_;
  Faults faults_;
  std::shared_ptr<StrikePlan> strike_;
};

}  // namespace speedo::sim
