#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/store/parameter_store.hpp>

#include "sim/proof_scenario.hpp"
#include "sim/proof_store.hpp"
#include "sim/quadratic.hpp"
#include "sim/world.hpp"

namespace speedo::sim {

// What a worker put into the store, before it did.
struct ContributionMade {
  std::uint64_t epoch = 0, worker = 0, run = 0, base_version = 0;
  std::uint32_t stage = 0;
  std::span<const float> values;
};

// A worker's trainer: SGD on the quadratic, exchanging with the store as TrainerEngine does, in
// steps of virtual time. Like it, it works off what it is asked one after another.
class ProofTrainer : public WorkerWork {
 public:
  struct Setting {
    const Scenario& scenario;
    const Quadratic& problem;
    StoreServer& server;
    std::uint64_t seed = 0;
    double slowness = 1.0;
    std::function<void(const ContributionMade&)> on_contribution = {};
    // The loss or the contribution of this run is not finite.
    std::function<void(std::uint64_t run, const FaultMark&)> on_spoilt = {};
  };
  explicit ProofTrainer(Setting setting);
  // Before the first event of its worker.
  void attach(WorkerNode& node);

  void prepare(const WelcomeMessage& welcome,
               std::function<void(Result<Digest>)> done) override;
  void run(const TrainMessage& order, WorkerId worker,
           std::function<void(Result<RunReport>)> done) override;
  void look_for_end(std::uint64_t epoch, std::function<void(bool)> done) override;
  void cancel() override;
  std::uint64_t progress() const override;

  // Faults.
  StoreClient& client() { return *client_; }
  bool at_work() const { return current_ != nullptr; }  // has an order that is not reported
  void stall_until(Instant end, const FaultMark& mark);
  void spoil_next(bool only_contribution, const FaultMark& mark);

 private:
  enum class Spoilt { kNothing, kLoss, kContribution };
  using Step = std::function<void()>;
  using RunDone = std::function<void(Result<RunReport>)>;
  struct Life {
    WorkerId worker;
    std::uint64_t epoch = 0;
    std::uint32_t stage = 0;
    std::vector<float> own, elastic;           // of elastic averaging
    std::optional<std::uint64_t> contributed;  // run whose elastic step is not decided
  };
  struct Run {
    TrainMessage order;
    RunDone done;
    std::vector<float> record, x, gradient, result;
    std::uint64_t base = 0;
    float loss = 0.0F;
    bool cancelled = false;
    std::unique_ptr<RecordWriter> writer;
  };
  using RunPtr = std::shared_ptr<Run>;

  void enqueue(Step step);
  void next();
  void end(const RunPtr& run, Result<RunReport> result);
  void when_reachable(int attempt, Step go, std::function<void(Error)> fail);
  void after(Instant delay, Step step);
  void look_for_job(Instant deadline, std::function<void(Result<Digest>)> done);

  void begin_run(const RunPtr& run);
  void read_weights(const RunPtr& run, Instant deadline, std::uint64_t version,
                    std::function<void(std::uint64_t version)> go);
  bool take_elastic_step(const RunPtr& run);
  void compute(const RunPtr& run);
  void compute_step(Run& run, std::uint32_t step);
  void contribute(const RunPtr& run);
  void put(const RunPtr& run);
  bool is_stalled() const;
  bool spoils(Spoilt what, std::uint64_t run);
  const UpdateSpec& spec(const Run& run) const;
  Instant draw(Instant mean);

  const Setting setting_;
  Random random_;
  WorkerNode* node_ = nullptr;
  std::unique_ptr<StoreClient> client_;
  std::shared_ptr<ParameterStore> store_;
  std::deque<Step> steps_;
  bool busy_ = false;
  RunPtr current_;
  Life life_;
  std::vector<float> momentum_;  // outlives lives, as the rule's history does
  Instant stalled_until_{0};
  FaultMark stall_;
  Spoilt spoilt_ = Spoilt::kNothing;
  FaultMark spoiler_;
};

}  // namespace speedo::sim
