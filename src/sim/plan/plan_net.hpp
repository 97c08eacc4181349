#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/messages.hpp>
#include <speedo/train/worker_session.hpp>


namespace speedo::sim {

// The numbers behind a plan. Times are the cost model's; here everything happens at once.
class PlanNet {
 public:
  virtual ~PlanNet() = default;
  virtual Digest model() const = 0;
  virtual Result<Version> enter_stage(std::uint32_t stage, const std::string& state) = 0;
  virtual Result<MergeResult> merge(const MergeJob& job) = 0;
  // A whole run of the worker in place `place` (from 0), on the weights as they are now. The
  // report's times are left to the caller.
  virtual Result<RunReport> run(std::size_t place, WorkerId worker, const TrainMessage& order) = 0;
  // The weights as they are now.
  virtual Result<std::vector<TestScores>> test() = 0;
};

// No numbers: versions are counted, every loss is 0.
class CountingNet : public PlanNet {
 public:
  // `samples`: of one run.
  explicit CountingNet(std::uint64_t samples) : samples_(samples) {}
  Digest model() const override { return {1, 1}; }
  Result<Version> enter_stage(std::uint32_t, const std::string&) override { return version_; }
  Result<MergeResult> merge(const MergeJob&) override {
    version_.value += 1;
    return MergeResult{.version = version_};
  }
  Result<RunReport> run(std::size_t, WorkerId, const TrainMessage& order) override {
    RunReport report;
    report.run = RunId{order.run};
    report.base = version_;
    report.samples = samples_ * order.shards;
    return report;
  }
  Result<std::vector<TestScores>> test() override {
    TestScores scores;
    scores.accuracy = scores.loss = 0.0F;
    return std::vector{scores};
  }

 private:
  const std::uint64_t samples_;
  Version version_;
};

}  // namespace speedo::sim
