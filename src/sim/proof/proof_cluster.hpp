#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>

#include "sim/event_log.hpp"
#include "sim/fault_ledger.hpp"
#include "sim/check/lease_checker.hpp"
#include "sim/check/lineage.hpp"
#include "sim/proof/proof_master.hpp"
#include "sim/proof_network.hpp"
#include "sim/proof/proof_memory.hpp"
#include "sim/proof/proof_run.hpp"
#include "sim/proof/proof_scenario.hpp"
#include "sim/proof_servers.hpp"
#include "sim/proof/proof_shard.hpp"
#include "sim/proof/proof_worker.hpp"
#include "sim/check/record_checker.hpp"
#include "sim/check/session_checker.hpp"
#include "sim/check/store_checker.hpp"
#include "sim/world.hpp"
#include "store/record_codec.hpp"

namespace speedo::sim {

// One simulated training: world, store, processes, those who start them again, and the checkers.
class ProofCluster : private Observer {
 public:
  ProofCluster(const Scenario& scenario, const ProofParts& parts);
  ~ProofCluster() override;
  ProofResult run();

 private:
  // The place of a worker: a process, and after its end another one.
  struct Place {
    std::unique_ptr<ProofWorker> work;
    WorkerNode* node = nullptr;
    std::uint64_t processes = 0;
    std::vector<std::string> offered;  // its contributions' keys, in memory of this process
  };
  // The place of a part's merger, likewise.
  struct ShardPlace {
    std::unique_ptr<ProofShard> work;  // null: nobody ever is there
    WorkerNode* node = nullptr;
    std::uint64_t processes = 0;
  };
  struct Mastership {
    std::unique_ptr<ProofMaster> master;
    std::unique_ptr<SessionChecker> checker;
    ScheduleChecker* schedule = nullptr;
    std::uint64_t store_incarnation = 0;  // of the server, when it was granted the job
    FaultMark rival;  // feels it when two masters meet
    bool starts_anew = false;  // whatever is in the store
    bool met_lost_part = false;  // at some time no server had a part of the weights
  };

  // Observer.
  void before(const MasterNode& node, const MasterEvent& event) override;
  void after(const MasterNode& node, const MasterEvent& event,
             const MasterCommands& commands) override;
  void before(const WorkerNode& node, const WorkerEvent& event) override;
  void after(const WorkerNode& node, const WorkerEvent& event,
             const WorkerCommands& commands) override;

  // Processes.
  void start_worker(std::size_t place);
  ProofWorker::Setting worker_setting(std::size_t place);
  void start_shard(std::size_t part);
  void start_master(bool on_this_machine, const FaultMark& rival = {});
  ProofMaster::Setting master_setting(Mastership& mastership);
  void watch_merges(Mastership& mastership, ProofMaster::Setting& setting);
  void watch_store(std::size_t server, const KvOperation& operation);
  void watch_lost_data(std::size_t server);
  void watch_contribution(const KvOperation& operation);
  void watch_contribution_in_memory(const std::string& key, std::uint64_t run);
  void watch_what_was_put_again(const std::string& key, std::uint64_t run);
  void take_contribution(const std::string& key, std::uint64_t run, std::vector<float> values);
  void watch_overwriting(std::size_t place);
  void watch_claim(const KvOperation& operation);
  void watch_start(Mastership& mastership, const Merger::Copy& start);
  void watch_merge(Mastership& mastership, const master_command::StartMerge& job,
                   const MergeResult& result, const Merger::Copy& now);
  void watch_torn(Mastership& mastership, bool by_another);
  void watch_reading(const Mastership& reader);
  void watch_put_off(Mastership& mastership, const master_command::StartMerge& job,
                     const MergeResult& result, const Merger::Copy& now);
  void watch_unseen(Mastership& mastership, const master_command::StartMerge* job,
                    const MergeResult& result);
  std::optional<Merger::Copy> read_copy(ParameterStore& store, const std::string& key,
                                        std::uint64_t term) const;
  void watch_granted(Mastership& mastership, std::uint64_t term);
  void watch_files(std::uint64_t term);
  void watch_published(const Mastership& mastership, Version version);
  bool are_in_memory(const master_command::StartMerge& job, std::uint64_t term) const;
  void watch_command(Mastership& mastership, const MasterCommand& command);
  void expect_erased(Mastership& mastership, std::uint64_t worker);
  void watch_erased(Mastership& mastership, std::uint64_t worker);
  void watch_rejected(const master_command::StartMerge& job, const MergeResult& result);
  bool is_stale(const Mastership& mastership) const;
  void watch_end(ProofMaster& master, const std::optional<Error>& error);
  bool misses_part();
  void watch_unanswered(const KvOperation& operation);
  void watch_parts(const KvOperation& operation);
  bool misses_newest_part();
  bool misses_chunks(const ProofMaster& master) const;
  void replace_master_soon();
  void ensure_master();
  void stand_still(ProofMaster& master, Instant time);
  std::unique_ptr<Strategy> make_watched(Mastership& mastership, const StrategyOptions& options);
  Mastership* mastership_of(const MasterNode& node);
  Mastership* mastership_named(std::string_view name) const;
  ProofMaster* current_master();
  bool is_dead(std::string_view name) const;  // a master's process
  bool any_master_alive() const;
  bool any_master_merging() const;

  // Faults.
  void plan_faults();
  void strike(const Fault& fault);
  bool strike_worker(const Fault& fault, const FaultMark& mark);
  bool strike_connection(const Fault& fault, const FaultMark& mark);
  bool strike_master(const Fault& fault, const FaultMark& mark);
  bool strike_shard(const Fault& fault, const FaultMark& mark);
  bool strike_manifest(const Fault& fault, const FaultMark& mark);
  void strike_shard_store(const Fault& fault, const FaultMark& mark);
  void kill_shard(std::size_t part, bool silent, Instant back, const FaultMark& mark);
  StoreServer& server_of(const Fault& fault);
  void strike_store(const Fault& fault, const FaultMark& mark);
  void kill_worker(std::size_t place, bool silent, Instant back, const FaultMark& mark);
  void flap_worker(std::size_t place, std::uint64_t times, const FaultMark& mark);
  template <class Node>
  void freeze_marked(Node& node, Instant time, bool at_work, const FaultMark& mark);
  void disturb_clock(NodeId node, Process& process, const Fault& fault, const FaultMark& mark);
  void cut(NodeId from, NodeId to, Instant time, const FaultMark& mark);
  void cut_from_store(StoreClients& clients, Instant time, const FaultMark& mark);
  void damage_checkpoint(const Fault& fault, const FaultMark& mark);
  void write_other_training(const FaultMark& mark);
  struct Damage {
    std::size_t server;
    std::string key;  // on it
    FaultMark mark;
  };
  void contribution_damaged(const Damage& damage);
  void set_client_faults(const StoreClient::Faults& faults);
  void end_faults();

  // The end.
  bool reaches_store(ProofMaster& master) const;
  bool over() const;
  void check_end();

  const Scenario& scenario_;
  const ShortChunks chunks_;
  const ProofParts& parts_;
  Random random_;
  FaultLedger ledger_;
  Violations violations_;
  const Quadratic problem_;
  ProofNetwork network_;
  World world_;
  StoreServers servers_;
  EventLog log_;
  Lineage lineage_;
  RecordChecker record_checker_;
  StoreChecker store_checker_;
  LeaseChecker lease_checker_;
  SimulatedDisk disk_;
  ProofMemory memory_;
  StartChecker start_checker_;
  // Their processes are the world's, and their store the server's.
  std::vector<std::unique_ptr<Mastership>> masters_;
  std::map<std::uint64_t, Mastership*> by_node_;
  std::vector<Place> places_;
  std::vector<ShardPlace> shards_;                       // by part
  std::vector<std::unique_ptr<WorkerWork>> old_work_;    // their actions may still be queued
  StoreClient::Faults client_faults_;
  std::map<std::uint64_t, FaultMark> clocks_, leaving_;  // by node
  std::map<std::uint64_t, FaultMark> spoilt_;            // by run: its report, or contribution
  std::map<std::string, Damage> damaged_;                // by record, until it is read
  using Owner = std::pair<std::uint64_t, std::uint64_t>;  // term, worker
  std::map<Owner, std::uint64_t> newest_runs_;            // of which contributions were made
  std::uint64_t newest_term_ = 0, handled_ = 0;
  MergeCounts merges_;
  // Since the store has lost data, and still when weights were last published.
  bool part_is_lost_ = false;
  std::optional<RecordManifest> newest_parts_;  // of weights that were put in parts
  bool weights_given_up_ = false;  // by whoever starts masters
  bool ends_undisturbed_ = false;  // no fault since its master said that it is over
  std::optional<ProofMaster*> finished_;  // without an error
};

}  // namespace speedo::sim
