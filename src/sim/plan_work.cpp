#include "sim/plan_work.hpp"

#include <memory>
#include <optional>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo::sim {
namespace {

std::uint64_t microseconds(Instant time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

}  // namespace

void PlanNetwork::carry(NodeId from, NodeId to, std::size_t /*bytes*/,
                        std::function<void()> arrive) {
  SPEEDO_ASSERT((from.value == 0) != (to.value == 0));
  if (!costing_) return queue_->after(Instant{0}, std::move(arrive));
  if (to.value == 0) {
    costs_->message_to_master(from.value - 1, std::move(arrive));
  } else {
    costs_->message_to_worker(to.value - 1, std::move(arrive));
  }
}

void PlanMasterWork::merge(master_command::StartMerge job,
                           std::function<void(Result<MergeResult>)> done) {
  const auto contributions = static_cast<std::uint64_t>(job.contributions.size());
  costs_.merge(traffic_, contributions,
               [this, job = std::move(job), done = std::move(done)] { done(net_.merge(job)); });
}

void PlanMasterWork::enter_stage(std::uint32_t stage, std::string state,
                                 std::function<void(Result<Version>)> done) {
  costs_.publish(traffic_.merge_writes,
                 [this, stage, state = std::move(state), done = std::move(done)] {
                   done(net_.enter_stage(stage, state));
                 });
}

void PlanMasterWork::test(std::function<void(Result<std::vector<TestScores>>)> done) {
  queue_.after(Instant{0}, [done = std::move(done), scores = net_.test()] { done(scores); });
}

void PlanMasterWork::snapshot(std::uint64_t /*iteration*/,
                              std::function<void(Result<void>)> done) {
  queue_.after(Instant{0}, [done = std::move(done)] { done({}); });
}

void PlanWorkerWork::prepare(const WelcomeMessage& welcome,
                             std::function<void(Result<Digest>)> done) {
  worker_ = WorkerId{welcome.worker};
  queue_.after(Instant{0}, [this, done = std::move(done)] { done(net_.model()); });
}

void PlanWorkerWork::look_for_end(std::uint64_t /*term*/, std::function<void(bool)> done) {
  queue_.after(Instant{0}, [done = std::move(done)] { done(false); });
}

// One run on its way.
struct PlanWorkerWork::Run {
  TrainMessage order;
  WorkerId worker;
  std::function<void(Result<RunReport>)> done;
  Instant compute_time{0}, exchange_time{0};
  Instant phase_start{0};
  std::optional<Result<RunReport>> report;
};

void PlanWorkerWork::run(const TrainMessage& order,
                         std::function<void(Result<RunReport>)> done) {
  auto run = std::make_shared<Run>();
  run->order = order;
  run->worker = worker_;
  run->done = std::move(done);
  // Each phase starts the next one when it is over, and adds its time to the run's.
  const auto ended = [this, run](Instant& time) {
    time += queue_.now() - run->phase_start;
    run->phase_start = queue_.now();
    progress_ += 1;
  };
  const auto write = [this, run, ended] {
    costs_.write(place_, traffic_.worker_writes, [this, run, ended] {
      ended(run->exchange_time);
      finish(run);
    });
  };
  const auto compute = [this, run, ended](std::function<void()> next) {
    costs_.compute(place_, steps_ * run->order.shards, [run, ended, next = std::move(next)] {
      ended(run->compute_time);
      next();
    });
  };
  const auto read = [this, run, ended](std::function<void()> next) {
    costs_.read(place_, traffic_.worker_reads, [this, run, ended, next = std::move(next)] {
      ended(run->exchange_time);
      run->report = net_.run(place_, run->worker, run->order);
      next();
    });
  };
  run->phase_start = queue_.now();
  if (traffic_.reads_after_compute) {
    compute([read, write] { read(write); });
  } else {
    read([compute, write] { compute(write); });
  }
}

void PlanWorkerWork::finish(const std::shared_ptr<Run>& run) {
  SPEEDO_ASSERT(run->report.has_value());
  Result<RunReport>& report = *run->report;
  if (report) {
    report->compute_us = microseconds(run->compute_time);
    report->exchange_us = microseconds(run->exchange_time);
  }
  run->done(std::move(report));
}

}  // namespace speedo::sim
