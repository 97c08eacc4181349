#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <speedo/base/random.hpp>

#include "sim/event_queue.hpp"
#include "sim/process.hpp"
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
  void restart(Survives what, Instant down_time);
  // The same within the client operation that comes so many after this.
  void restart_at_operation(std::uint64_t count, Survives what);
  void cancel_restart() { restart_.reset(); }
  // A bit of the next value flips whose key has this in it.
  void damage_next(std::string key_part) { damage_ = std::move(key_part); }

  // Executes, up or not.
  void execute(const KvPtr& operation);
  MemoryKeyValue& map() { return map_; }
  std::uint64_t lives() const { return life_; }

  // Writes by masters are then executed whoever has the job: a broken store, for tests.
  bool ignores_fences = false;
  // Called after each operation that took effect.
  std::function<void(const KvOperation&)> on_done;
  std::function<void(bool lost_data)> on_restart;

 private:
  struct Restart {
    std::uint64_t countdown;
    Survives what;
  };
  EventQueue& queue_;
  MemoryKeyValue map_;
  MemoryImage image_;
  Instant up_at_{0};
  std::uint64_t life_ = 1;
  std::optional<Restart> restart_;
  void damage(const std::string& key);
  std::string damage_;
};

// One process' way to the server. Faults strike within operations, so also in the midst of a merge
// or a put.
class StoreClient : public KeyValue {
 public:
  StoreClient(StoreServer& server, Process& process, std::uint64_t seed)
      : server_(server), process_(process), random_(seed) {}

  void submit(KvPtr operation) override;
  Result<void> erase_all(std::string_view prefix) override;

  // Whether an operation begun now would get through.
  bool reachable() const { return server_.up() && connected; }

  bool connected = true;         // no partition
  double error_chance = 0.0;     // of an operation to fail for good, with or without effect
  double repeat_chance = 0.0;    // to be executed twice
  // At the operation that comes so many after this, with or without its effect, `strike` is called:
  // it kills the process, or stops it and lets the world go on without it.
  void strike_at_operation(std::uint64_t count, std::function<void()> strike);
  void cancel_strike() { strike_ = nullptr; }

 private:
  bool strike_now();
  StoreServer& server_;
  Process& process_;
  Random random_;
  std::uint64_t countdown_ = 0;
  std::function<void()> strike_;
};

}  // namespace speedo::sim
