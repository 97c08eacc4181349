#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/store/parameter_store.hpp>

#include "base/answer.hpp"
#include "checkpoint/checkpoint_writer.hpp"
#include "sim/process_platform.hpp"
#include "sim/proof/proof_scenario.hpp"
#include "sim/proof_servers.hpp"
#include "sim/proof/quadratic.hpp"
#include "sim/simulated_disk.hpp"
#include "sim/check/start_checker.hpp"
#include "sim/proof/watched_merger.hpp"
#include "sim/proof/watched_parts.hpp"
#include "sim/world.hpp"
#include "train/job/master_run.hpp"

namespace speedo::sim {

// Of the files that masters write.
inline constexpr const char* kSnapshotPrefix = "/snapshots/proof";

// A master process: the real MasterRun, with its lease, its choice of a start, its merger and its
// care for the store, on a simulated process; and what its watchers are told.
class ProofMaster {
 public:
  struct Setting {
    const Scenario& scenario;
    const Quadratic& problem;
    StoreServers& servers;
    SimulatedDisk& disk;
    std::uint64_t seed = 0;
    std::string name = {};  // of the process
    bool starts_anew = false;  // if there are no files to go on from
    StrategyFactory make_strategy = {};
    std::function<Result<std::unique_ptr<Backend>>()> make_backend = {};
    std::function<bool(std::string_view name)> is_dead = {};  // of another process
    // It has chosen these files, or none, after it found this training in the store; gives where
    // they are.
    std::function<std::optional<StartChecker::Place>(const std::optional<TrainingId>& stored,
                                                     const std::optional<SavedCheckpoint>&)>
        on_files = {};
    // It has written a checkpoint of this state to files.
    std::function<void(const std::string& state)> on_written = {};
    // A server of the store has just answered what it read.
    std::function<void(ProofMaster&)> on_read = {};
    // Its merger begins with this.
    std::function<void(ProofMaster&, const Merger::Copy& start)> on_start = {};
    std::function<void(ProofMaster&, const master_command::StartMerge&, const MergeResult&,
                       const Merger::Copy&)>
        on_merged = {};
    std::function<void(ProofMaster&, const Merger::Copy&)> on_stage = {};
    // Of merges by parts: the weights as this master has published them, if they are all there.
    std::function<std::optional<Merger::Copy>(ProofMaster&, Version)> read_published = {};
    // And if they are not.
    std::function<void(ProofMaster&, const master_command::StartMerge*, const MergeResult&)>
        on_unseen = {};
    // A merge or the entering of a stage failed, perhaps after it was published.
    std::function<void(ProofMaster&)> on_torn = {};
    // A server of the store has executed what it asked for.
    std::function<void(ProofMaster&, std::size_t server, const KvOperation&)> on_executed = {};
    std::function<void(ProofMaster&, const std::optional<Error>&)> on_end = {};
    // Workers may come for its memory now; gives the address of its door. Null: it has none.
    std::function<std::string(ProofMaster&, std::shared_ptr<SharedStore>, std::uint64_t term)>
        open_door = {};
    std::function<void(ProofMaster&)> die = {};
    std::function<void(ProofMaster&, Instant)> stand_still = {};
  };
  ProofMaster(Setting setting, World& world);
  ~ProofMaster();
  ProofMaster(const ProofMaster&) = delete;
  ProofMaster& operator=(const ProofMaster&) = delete;
  void start();
  // Its process is dead: its threads end.
  void unwind();

  MasterNode& node() { return node_; }
  const MasterNode& node() const { return node_; }
  const std::string& name() const { return setting_.name; }
  // Granted by the store; 0 before.
  std::uint64_t term() const { return term_; }
  void granted(std::uint64_t term) { term_ = term; }
  bool is_at_work() const { return !ended_ && node().process().alive(); }
  bool is_training() const { return node_.session() != nullptr; }
  bool is_merging() const { return publishing_ && order_; }
  // It publishes, or did so when its process died: the merge of this order, or without one a stage.
  bool is_publishing() const { return publishing_; }
  const master_command::StartMerge* order() const { return order_ ? &*order_ : nullptr; }
  const std::optional<Error>& end_error() const { return end_error_; }
  const MasterConfig& config() const { return config_; }
  // As training ended.
  struct Ended {
    std::uint64_t iteration = 0;
    std::string state;
    std::vector<float> weights;
    // Not in the midst of a later stage's first contributions without rounds: all of them are made
    // from the same weights, and come, with histories of the stage before, to too long a step.
    bool is_settled = true;
  };
  const Ended& end_state() const { return end_state_; }

  // Faults.
  StoreClients& clients() { return clients_; }
  // At so many store operations after the next merge begins: dies, or stands still for a time.
  struct MergeStrike {
    std::uint64_t operation = 0;
    std::optional<Instant> stands_still;
    FaultMark mark;
  };
  void strike_next_merge(MergeStrike strike) { strike_ = strike; }
  // `strike` happens at the next manifest of the weights, before it is there or after.
  void strike_at_manifest(const FaultMark& mark, std::function<void()> strike);
  // At so many changes of files from now: dies, before or after it.
  void strike_in_files(std::uint64_t change, bool with_effect, const FaultMark& mark);
  const std::optional<StartChecker::Place>& chosen_files() const { return chosen_files_; }
  void cancel_strike();

 private:
  MasterOptions options();
  void choose_files(MasterOptions& options);
  TrainerParts parts();
  MasterHooks hooks(CheckpointWriter& checkpoints);
  void live();
  std::optional<Error> lead(MasterRun& run);
  MergeWatch watch();
  PartsWatch watch_parts();
  void merged_by_parts(const master_command::StartMerge* job, const MergeResult& result);
  void begin_publishing(const master_command::StartMerge* job);
  void end(std::optional<Error> error);

  const Setting setting_;
  World& world_;
  MasterNode& node_;
  Random random_;
  ProcessPlatform platform_;
  StoreClients clients_;
  ProcessFiles files_;
  std::optional<StartChecker::Place> chosen_files_;
  MasterConfig config_;
  std::unique_ptr<Thread> main_;
  std::uint64_t term_ = 0;
  std::optional<MergeStrike> strike_;
  std::optional<master_command::StartMerge> order_;
  bool publishing_ = false;
  std::vector<float> weights_;  // newest
  Ended end_state_;
  bool ended_ = false;
  std::optional<Error> end_error_;
};

}  // namespace speedo::sim
