#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>

#include "sim/process_platform.hpp"
#include "sim/proof/proof_scenario.hpp"
#include "sim/proof_servers.hpp"
#include "sim/proof/quadratic_learner.hpp"
#include "sim/world.hpp"
#include "train/job/job_worker.hpp"

namespace speedo::sim {

// A worker process beside its session: the real JobWorker, with its trainer and its exchange, on a
// simulated process that learns the quadratic.
class ProofWorker : public WorkerWork {
 public:
  struct Setting {
    const Scenario& scenario;
    const Quadratic& problem;
    StoreServers& servers;
    std::uint64_t seed = 0;
    double slowness = 1.0;
    std::function<Result<std::unique_ptr<Backend>>()> make_backend = {};
    // The loss or the contribution of this run is not finite.
    std::function<void(std::uint64_t run, const FaultMark&)> on_spoilt = {};
    // What this run of a master of `term` begins from.
    std::function<void(std::uint64_t term, const TrainMessage&, const std::vector<float>&)>
        on_begin = {};
    // To the memory of a master on its machine; null: there is none.
    FindDoor find_door = {};
    // A run came to its end; its contribution is `key`'s, if it came to anything.
    std::function<void(const std::string& key, std::uint64_t run)> on_trained = {};
    // It has erased what runs that it was to withdraw had put under `key`; the store answered it.
    std::function<void(const std::string& key)> on_withdrawn = {};
  };
  explicit ProofWorker(Setting setting);
  ~ProofWorker() override;
  // Before the first event of its worker.
  void attach(EventQueue& queue, WorkerNode& node, const std::string& name);
  // Its process is dead: its threads end.
  void unwind();

  void prepare(const WelcomeMessage& welcome,
               std::function<void(Result<Digest>)> done) override;
  void run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) override;
  void save_state(const SaveStateMessage& order, std::function<void(Result<void>)> done) override;
  void look_for_end(std::uint64_t term, std::function<void(bool)> done) override;
  void cancel() override;
  void withdraw() override;
  std::uint64_t progress() const override;

  // Faults.
  StoreClients& clients() { return *clients_; }
  bool at_work() const { return run_.has_value(); }  // has an order that is not reported
  void stall_until(Instant end, const FaultMark& mark);
  void spoil_next(bool only_contribution, const FaultMark& mark);

 private:
  TrainerParts parts();
  void tell_withdrawn();

  const Setting setting_;
  Random random_;
  WorkerNode* node_ = nullptr;
  ComputeState compute_;
  FaultMark spoiler_;
  std::optional<std::uint64_t> run_;
  std::optional<TrainMessage> beginning_;  // the order of a run that has seen no weights yet
  std::uint64_t term_ = 0, worker_ = 0;   // of the last welcome
  struct Withdrawal {
    std::string key;
    std::uint64_t failures;  // of its clients before
  };
  std::vector<Withdrawal> withdrawals_;  // since the last preparation
  std::unique_ptr<ProcessPlatform> platform_;
  std::unique_ptr<StoreClients> clients_;
  std::unique_ptr<JobWorker> job_;
};

}  // namespace speedo::sim
