#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/train/trainer.hpp>

#include "caffe.pb.h"

namespace speedo {

// What a trainer's thread owns: net, update rule, and the way of one run through them.
// Thread safety: made, used and destroyed on one thread.
class TrainerEngine {
 public:
  static Result<std::unique_ptr<TrainerEngine>> create(const TrainerParts& parts, WorkerId worker,
                                                       JobSpec job,
                                                       std::shared_ptr<ParameterStore> store);

  Digest model() const { return model_; }

  // `cancelled` is asked between steps and between chunks.
  Result<RunReport> run(const TrainMessage& order, const std::function<bool()>& cancelled);

 private:
  using Cancelled = std::function<bool()>;
  TrainerEngine() = default;

  Result<RecordInfo> read_weights(std::uint64_t version, const Cancelled& cancelled);
  void point_feeds(const TrainMessage& order);
  Result<float> compute(const TrainMessage& order, const Cancelled& cancelled);
  Result<float> compute_step(std::int64_t iteration, bool last);
  std::span<float> form_contribution(std::size_t offset, std::size_t count);
  std::span<float> host_part(Arena& arena, std::size_t offset, std::size_t count);
  Result<void> write_contribution(const TrainMessage& order, std::uint64_t base_version,
                                  const Cancelled& cancelled);
  std::uint64_t samples_per_run() const;

  WorkerId worker_;
  JobSpec job_;
  std::shared_ptr<ParameterStore> store_;
  caffe::SolverParameter solver_;
  // In the order of dependence: nets use backend and feeds, the rule uses the backend.
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<FeedFactory> feeds_;
  SolverNets nets_;
  std::unique_ptr<UpdateRule> rule_;
  Digest model_;
  std::uint64_t runs_done_ = 0;
  std::vector<float> before_;  // weights as read; only for runs of several steps
  std::vector<float> stage_;   // between arenas and store; empty if the store can use them directly
};

}  // namespace speedo
