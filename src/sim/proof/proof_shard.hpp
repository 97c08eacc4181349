#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/backend/backend.hpp>

#include "sim/process_platform.hpp"
#include "sim/proof/proof_scenario.hpp"
#include "sim/proof_servers.hpp"
#include "sim/world.hpp"
#include "train/job/job_part.hpp"

namespace speedo::sim {

// A process that merges a part, beside its session: the real JobPart on a simulated process.
class ProofShard : public WorkerWork {
 public:
  struct Setting {
    const Scenario& scenario;
    StoreServers& servers;
    std::uint64_t seed = 0;
    std::function<Result<std::unique_ptr<Backend>>()> make_backend = {};
    // A server has executed what this asked for under a master of `term`.
    std::function<void(std::uint64_t term, std::size_t server, const KvOperation&)>
        on_executed = {};
    // It has written its part of a merge.
    std::function<void()> on_merged = {};
  };
  explicit ProofShard(Setting setting);
  ~ProofShard() override;
  // Before the first event of its node.
  void attach(EventQueue& queue, WorkerNode& node, const std::string& name);
  // Its process is dead: its threads end.
  void unwind();

  void prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) override;
  void run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) override;
  void save_state(const SaveStateMessage& order, std::function<void(Result<void>)> done) override;
  void look_for_end(std::uint64_t term, std::function<void(bool)> done) override;
  void cancel() override;
  void withdraw() override { cancel(); }
  std::uint64_t progress() const override { return 0; }

  // Faults.
  StoreClients& clients() { return *clients_; }
  // Was ordered a merge, and has not been told whether it counts.
  bool is_merging() const { return merging_.has_value(); }
  bool is_open() const { return open_; }
  // At so many store operations after its next merge begins.
  struct MergeStrike {
    std::uint64_t operation = 0;
    std::function<void()> strike;
  };
  void strike_next_merge(MergeStrike strike) { strike_ = std::move(strike); }
  void cancel_strike();

 private:
  void take(const PartOrder& order);
  void answer(const PartAnswer& answer);

  const Setting setting_;
  Random random_;
  WorkerNode* node_ = nullptr;
  std::uint64_t term_ = 0;  // the highest of the masters that it has served
  bool open_ = false;
  std::optional<std::uint64_t> merging_;  // the order
  std::optional<MergeStrike> strike_;
  std::unique_ptr<ProcessPlatform> platform_;
  std::unique_ptr<StoreClients> clients_;
  std::unique_ptr<JobPart> job_;
};

}  // namespace speedo::sim
