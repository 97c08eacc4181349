#include "sim/plan/plan_work.hpp"

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

void PlanMasterWork::merge(MergeJob job,
                           std::function<void(Result<MergeResult>)> done) {
  merger_.merge(job, [this, job, done = std::move(done)] { done(net_.merge(job)); });
}

void PlanMasterWork::enter_stage(std::uint32_t stage, std::string state,
                                 std::function<void(Result<Version>)> done) {
  merger_.publish([this, stage, state = std::move(state), done = std::move(done)] {
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
  parts_.queue.after(Instant{0}, [this, done = std::move(done)] { done(net_.model()); });
}

void PlanMasterWork::finish_snapshot(const master_command::FinishSnapshot& /*command*/) {
  SPEEDO_ASSERT(false);
}

void PlanMasterWork::erase_seat(std::uint64_t /*seat*/) { SPEEDO_ASSERT(false); }

void PlanWorkerWork::save_state(const SaveStateMessage& /*order*/,
                                std::function<void(Result<void>)> /*done*/) {
  SPEEDO_ASSERT(false);
}

void PlanWorkerWork::look_for_end(std::uint64_t /*term*/, std::function<void(bool)> done) {
  parts_.queue.after(Instant{0}, [done = std::move(done)] { done(false); });
}

void PlanWorkerWork::run(const TrainMessage& order,
                         std::function<void(Result<RunReport>)> done) {
  const auto run = std::make_shared<PlanRun>(
      parts_, PlanRun::Order{.place = place_,
                             .worker = worker_,
                             .run = RunId{order.run},
                             .steps = parts_.update.steps_per_run * order.shards,
                             .has_weights = std::exchange(has_weights_, true)});
  const auto report = std::make_shared<std::optional<Result<RunReport>>>();
  run->on_opened = [this, order, report] {
    *report = net_.run(place_, worker_, order);
    progress_ += 1;
  };
  run->on_done = [this, run = run.get(), report, done = std::move(done)] {
    SPEEDO_ASSERT(report->has_value());
    progress_ += 1;
    Result<RunReport>& known = **report;
    if (known) {
      known->phases.forward_us = microseconds(run->computing());
      known->phases.exchange_us = microseconds(run->exchanging());
    }
    done(std::move(known));
  };
  run->start();
}

}  // namespace speedo::sim
