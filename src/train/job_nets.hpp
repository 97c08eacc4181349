#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/trainer.hpp>

#include "caffe.pb.h"
#include "train/job_thread.hpp"

namespace speedo {

// The nets of a job on the master, on a thread of their own: they give the layout and the first
// weights, are tested, and turn weights into files' messages. One thing after another, in order.
// Thread safety: all methods from any thread; callbacks run on the nets' thread.
class JobNets {
 public:
  struct Options {
    JobSpec job;
    bool with_tests = false;
    std::shared_ptr<const caffe::NetParameter> initial_weights;  // null: the net's fillers
    std::shared_ptr<const caffe::SolverState> initial_state;     // null: histories of zeros
  };
  using Scores = std::vector<TestScores>;
  using WriteSnapshot = std::function<Result<void>(std::int64_t iteration,
                                                   const caffe::NetParameter& model,
                                                   caffe::SolverState& state,
                                                   const std::string& session)>;

  // Builds the nets; blocking. The data sources must be readable here as well: they give the
  // shapes. Error kMismatch for an initial state of another net.
  static Result<std::unique_ptr<JobNets>> create(const TrainerParts& parts, Options options);
  // Breaks off a test under way and waits for the rest.
  ~JobNets();

  const ParameterLayout& layout() const { return layout_; }
  const caffe::SolverParameter& solver() const { return solver_; }
  // What the merger begins with: the first weights, and the initial state's histories if the job's
  // master keeps any.
  Checkpoint take_start() { return std::move(start_); }

  // Error of `done`: kData; kUnavailable after stop_tests().
  void test(std::shared_ptr<const Merger::Copy> weights,
            std::function<void(Result<Scores>)> done);
  void stop_tests() { stopping_ = true; }
  // Error of `done`: kNotFinite for weights that the test net finds to have diverged, of which
  // nothing is written; those of `write`.
  void snapshot(std::uint64_t iteration, std::shared_ptr<const Merger::Copy> weights,
                WriteSnapshot write, std::function<void(Result<void>)> done);

 private:
  JobNets() = default;
  Result<void> read_start(const Options& options);
  Result<void> build(const TrainerParts& parts, const Options& options);
  void load(const Merger::Copy& weights);
  Result<Scores> run_tests();
  Result<void> refuse_diverged(std::uint64_t iteration);
  Result<void> write(std::uint64_t iteration, const Merger::Copy& weights,
                     const WriteSnapshot& write_files);

  ParameterLayout layout_;
  caffe::SolverParameter solver_;
  Checkpoint start_;
  std::atomic<bool> stopping_{false};
  // Used by the thread alone.
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<FeedFactory> feeds_;
  SolverNets nets_;
  std::unique_ptr<UpdateRule> rule_;
  JobThread thread_;  // last: its work uses the others
};

}  // namespace speedo
