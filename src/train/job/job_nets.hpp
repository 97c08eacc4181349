#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <speedo/core/parameter_arena.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/trainer.hpp>

#include "caffe.pb.h"

namespace speedo {

struct JobNetsOptions {
  JobSpec job;
  bool with_tests = false;
  std::shared_ptr<const caffe::NetParameter> initial_weights;  // null: the net's fillers
  std::shared_ptr<const caffe::SolverState> initial_state;     // null: histories of zeros
};

// The nets of a job on the master, on a thread of their own: they give the layout and the first
// weights, are tested, and turn weights into files' messages. One thing after another, in order.
// Thread safety: all methods from any thread; callbacks run on the nets' thread.
class JobNets {
 public:
  using Scores = std::vector<TestScores>;
  using WriteSnapshot = std::function<Result<void>(std::int64_t iteration,
                                                   const caffe::NetParameter& model,
                                                   caffe::SolverState& state,
                                                   const std::string& session)>;

  // Builds the nets, or what the parts put in their place; blocking. The data sources must be
  // readable here as well: they give the shapes. Error kMismatch for an initial state of another
  // net.
  static Result<std::unique_ptr<JobNets>> create(const TrainerParts& parts,
                                                 const JobNetsOptions& options);
  // Breaks off a test under way and waits for the rest.
  virtual ~JobNets() = default;

  virtual const ParameterLayout& layout() const = 0;
  virtual const caffe::SolverParameter& solver() const = 0;
  // What workers may contribute as factors: of runs of one pass. See Net.
  virtual std::vector<FactorShape> factor_shapes() const { return {}; }
  // What the merger begins with: the first weights, and the initial state's histories if the job's
  // master keeps any. Once.
  virtual Checkpoint take_start() = 0;

  // Error of `done`: kData; kUnavailable after stop_tests().
  virtual void test(std::shared_ptr<const Merger::Copy> weights,
                    std::function<void(Result<Scores>)> done) = 0;
  virtual void stop_tests() = 0;
  // Error of `done`: kNotFinite for weights that the test net finds to have diverged, of which
  // nothing is written; those of `write`.
  virtual void snapshot(std::uint64_t iteration, std::shared_ptr<const Merger::Copy> weights,
                        WriteSnapshot write, std::function<void(Result<void>)> done) = 0;
};

}  // namespace speedo
