#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/random.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/train/checkpoint.hpp>

#include "sim/proof_scenario.hpp"
#include "sim/proof_store.hpp"
#include "sim/quadratic.hpp"
#include "sim/world.hpp"
#include "train/merger_engine.hpp"

namespace speedo::sim {

// What outlives every process: the files that snapshots were written to.
struct SnapshotFiles {
  std::uint64_t iteration = 0;
  std::optional<Checkpoint> newest;
};

// A master process beside its session: claim and lease, resuming, merging, tests, snapshots, the
// watch over the store. What actors/ and src/main do with threads happens here in virtual time.
class ProofMaster : public MasterWork {
 public:
  struct Setting {
    const Scenario& scenario;
    const Quadratic& problem;
    StoreServer& server;
    SnapshotFiles& files;
    std::uint64_t seed = 0;
    std::string holder = {};
    StrategyFactory make_strategy = {};
    std::function<Result<std::unique_ptr<Backend>>()> make_backend = {};
    // Whether the process that holds a lease is known to be dead.
    std::function<bool(const std::string& holder)> is_dead = {};
    std::function<void(ProofMaster&)> on_claimed = {};
    std::function<void(ProofMaster&)> on_refused = {};  // another holds the job
    std::function<void(ProofMaster&, const Checkpoint&, const MasterProgress&)> on_start = {};
    std::function<void(ProofMaster&)> on_merged = {};  // or entered a stage
    // A merge, or without a job the entering of a stage, failed, or the process died in it.
    std::function<void(ProofMaster&, const master_command::StartMerge* job)> on_torn = {};
    std::function<void(ProofMaster&, const std::optional<Error>&)> on_end = {};
    std::function<void(ProofMaster&)> die = {};
    // Lets the world go on while this process stands still in the midst of a store operation.
    // False: it did not.
    std::function<bool(ProofMaster&, Instant)> stand_still = {};
  };
  ProofMaster(Setting setting, World& world);
  ProofMaster(const ProofMaster&) = delete;
  ProofMaster& operator=(const ProofMaster&) = delete;
  void start();

  MasterNode& node() { return node_; }
  const MasterNode& node() const { return node_; }
  const std::string& holder() const { return setting_.holder; }
  std::uint64_t epoch() const { return claim_.epoch; }
  bool ended() const { return ended_; }
  bool is_training() const { return node_.session() != nullptr && !node_.finished(); }
  bool is_merging() const { return merging_ != nullptr; }
  const std::optional<Error>& end_error() const { return end_error_; }
  // Of the next version; null before the session began.
  MergerEngine* engine() { return engine_.get(); }
  const MasterConfig& config() const { return config_; }
  // What on_merged is called for.
  bool last_was_stage() const { return last_was_stage_; }
  const master_command::StartMerge& last_merge() const { return last_merge_; }
  const MergeResult& last_result() const { return last_result_; }

  void merge(master_command::StartMerge job,
             std::function<void(Result<MergeResult>)> done) override;
  void enter_stage(master_command::EnterStage stage,
                   std::function<void(Result<Version>)> done) override;
  void test(std::uint64_t iteration, std::function<void(Result<Score>)> done) override;
  void snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) override;
  void erase_worker(WorkerId worker) override;

  // Faults.
  StoreClient& client() { return *client_; }
  // At so many store operations after the next merge begins: dies, or stands still for a time.
  struct MergeStrike {
    std::uint64_t operation = 0;
    std::optional<Instant> stands_still;
    FaultMark mark;
  };
  void strike_next_merge(MergeStrike strike) { strike_ = strike; }
  void cancel_strike();

 private:
  using Step = std::function<void()>;
  void when_reachable(int attempt, Step go, std::function<void(Error)> fail);
  void claim(std::optional<ClaimAnswer> held);
  void judge_claim(const ClaimAnswer& answer, const std::optional<ClaimAnswer>& held);
  Result<void> begin();
  Result<Checkpoint> find_start();
  void keep_lease();
  void watch();
  void guard_weights();
  // On the engine, once nothing else uses it.
  void with_engine(Step step);
  void merge_now(const master_command::StartMerge& job,
                 const std::function<void(Result<MergeResult>)>& done);
  void end(std::optional<Error> error);
  Instant draw(Instant mean);

  const Setting setting_;
  World& world_;
  MasterNode& node_;
  Random random_;
  std::unique_ptr<StoreClient> client_;
  std::shared_ptr<ParameterStore> store_;
  MasterClaim claim_;
  MasterConfig config_;
  std::unique_ptr<MergerEngine> engine_;
  bool engine_busy_ = false;
  std::deque<Step> engine_steps_;
  std::optional<MergeStrike> strike_;
  const master_command::StartMerge* merging_ = nullptr;  // while the engine is at it
  master_command::StartMerge last_merge_;
  MergeResult last_result_;
  bool last_was_stage_ = true;
  bool ended_ = false;
  std::optional<Error> end_error_;
};

}  // namespace speedo::sim
