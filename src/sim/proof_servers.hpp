#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/proof_store.hpp"

namespace speedo::sim {

// The servers that a job's records are spread over: one, or as ShardedKeyValue spreads them.
class StoreServers {
 public:
  StoreServers(EventQueue& queue, std::string job, std::size_t count);

  std::size_t count() const { return servers_.size(); }
  StoreServer& at(std::size_t server) { return *servers_[server]; }
  // What is on all of them, as the job's readers name it.
  KeyValue& map() { return *map_; }
  std::shared_ptr<KeyValue> shared_map() const { return map_; }
  bool up() const;                    // all of them
  std::uint64_t incarnation() const;  // grows with each restart of any
  void cancel_restart();
  void ignore_fences();
  // Of a key on a server: what the job's readers call it.
  std::string name_of(std::size_t server, const std::string& key) const;

  // Called after each operation that changed something, before anything is damaged; its keys are as
  // the job's readers name them.
  std::function<void(std::size_t server, const KvOperation&)> on_done;
  // Called after each of them whose answer was lost.
  std::function<void(std::size_t server, const KvOperation&)> on_unanswered;
  std::function<void(std::size_t server, bool lost_data)> on_restart;

 private:
  friend class StoreClients;
  void tell(std::size_t server, const KvOperation& operation,
            const std::function<void(std::size_t, const KvOperation&)>& whom) const;
  const std::string job_;
  std::vector<std::unique_ptr<StoreServer>> servers_;
  std::shared_ptr<KeyValue> map_;
};

// One process' ways to all of them.
class StoreClients {
 public:
  StoreClients(StoreServers& servers, ProcessPlatform& platform, Random& seeds, Instant mean_time);

  // As production opens it.
  std::shared_ptr<KeyValue> map() const { return map_; }
  StoreClient& at(std::size_t server) { return *clients_[server]; }
  void disconnect(const FaultMark& mark);
  void connect();
  bool is_connected() const;
  std::uint64_t failures() const;  // see StoreClient, of all of them
  void set_faults(const StoreClient::Faults& faults);
  // At an operation on any server; see StoreClient.
  void strike_at_operation(std::uint64_t count, StoreClient::Strike strike);
  // At the next setting of this key, named as the job's readers do.
  void strike_at_set(const std::string& key, StoreClient::Strike strike);
  void cancel_strike();
  // Called after each operation of theirs that changed something.
  std::function<void(std::size_t server, const KvOperation&)> on_executed;
  // And after each that a server was read by, before anything else happens there.
  std::function<void()> on_read;

 private:
  StoreServers& servers_;
  std::vector<std::shared_ptr<StoreClient>> clients_;
  std::shared_ptr<KeyValue> map_;
};

}  // namespace speedo::sim
