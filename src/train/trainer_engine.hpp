#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/backend/backend.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/train/trainer.hpp>

#include "caffe.pb.h"
#include "train/trainer_host_view.hpp"
#include "train/trainer_exchange.hpp"
#include "train/trainer_update.hpp"

namespace speedo {

// What a trainer's thread owns: net, update rule, and the way of one run through them.
// Thread safety: made, used and destroyed on one thread; `progress` is counted for others.
class TrainerEngine {
 public:
  // One life of a worker.
  struct Life {
    WorkerId worker;
    std::string contribution;  // key
    JobSpec job;
    std::shared_ptr<ParameterStore> store;
  };
  static Result<std::unique_ptr<TrainerEngine>> create(const TrainerParts& parts, Life life,
                                                       std::atomic<std::uint64_t>& progress);

  // Begins another life with the net of this one. False: its job needs another net.
  bool begin_life(const Life& life);

  Digest model() const { return model_; }

  // `cancelled` is asked between steps and between chunks.
  Result<RunReport> run(const TrainMessage& order, std::function<bool()> cancelled);

 private:
  explicit TrainerEngine(std::atomic<std::uint64_t>& progress) : progress_(progress) {}

  Result<void> build(const TrainerParts& parts);
  void connect();
  Result<void> enter_stage(std::uint32_t stage);
  Result<void> make_rule(const UpdateSpec& update);
  void begin_steps(const TrainMessage& order);
  void point_feeds(const TrainMessage& order);
  Result<float> compute(const TrainMessage& order);
  Result<float> compute_step(const TrainMessage& order, std::uint32_t step);
  std::uint64_t samples_of(const TrainMessage& order) const;
  std::uint64_t batches_per_share() const;
  const UpdateSpec& spec() const { return life_.job.stages[*stage_]; }

  std::atomic<std::uint64_t>& progress_;
  Life life_;
  caffe::SolverParameter solver_;
  // In the order of dependence: nets use backend and feeds, the rule uses the backend.
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<FeedFactory> feeds_;
  SolverNets nets_;
  Digest model_;
  std::unique_ptr<HostView> host_;
  std::unique_ptr<RecordExchange> exchange_;
  std::unique_ptr<UpdateRule> rule_;  // null until a stage uses one; keeps its histories then
  UpdateSpec rule_spec_;              // what it was made for
  std::optional<std::uint32_t> stage_;
  std::unique_ptr<WorkerUpdate> update_;  // of the stage
  std::uint64_t shares_done_ = 0;
};

}  // namespace speedo
