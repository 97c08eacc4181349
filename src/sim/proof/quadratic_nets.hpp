#pragma once

#include <functional>
#include <memory>

#include <speedo/base/random.hpp>

#include "caffe.pb.h"
#include "sim/process_platform.hpp"
#include "sim/proof/quadratic.hpp"
#include "train/job/job_nets.hpp"
#include "train/job/job_thread.hpp"

namespace speedo::sim {

// The master's side of the problem: its start, its test, its snapshots, in virtual time.
class QuadraticNets : public JobNets {
 public:
  // `platform` and `problem` outlive it. Error: kMismatch for files of another problem.
  static Result<std::unique_ptr<JobNets>> create(ProcessPlatform& platform,
                                                 const Quadratic& problem,
                                                 const JobNetsOptions& options);

  const ParameterLayout& layout() const override { return problem_.layout(); }
  const caffe::SolverParameter& solver() const override { return solver_; }
  Checkpoint take_start() override { return std::move(start_); }
  void test(std::shared_ptr<const Merger::Copy> weights,
            std::function<void(Result<Scores>)> done) override;
  void stop_tests() override {}
  void snapshot(std::uint64_t iteration, std::shared_ptr<const Merger::Copy> weights,
                WriteSnapshot write, std::function<void(Result<void>)> done) override;

 private:
  QuadraticNets(ProcessPlatform& platform, const Quadratic& problem);
  Result<void> read_start(const JobNetsOptions& options);

  ProcessPlatform& platform_;
  const Quadratic& problem_;
  caffe::SolverParameter solver_;
  Checkpoint start_;
  JobThread thread_;  // last: its work uses the others
};

}  // namespace speedo::sim
