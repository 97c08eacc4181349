#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <speedo/train/update.hpp>

#include "sim/cost_model.hpp"
#include "sim/network.hpp"
#include "sim/plan_net.hpp"
#include "train/job/master_work.hpp"
#include "train/job/worker_work.hpp"

namespace speedo::sim {

// What world.hpp asks for, with the durations of a cost model and the numbers of a net. The master
// is node 0, the worker in place p node p + 1.

class PlanNetwork : public Network {
 public:
  // Before the first message.
  void attach(EventQueue& queue, CostModel& costs) {
    queue_ = &queue;
    costs_ = &costs;
  }
  // Until then messages take no time: how long a cluster takes to gather is not what is planned.
  void begin_costs() { costing_ = true; }
  void carry(NodeId from, NodeId to, std::size_t bytes, std::function<void()> arrive) override;

 private:
  EventQueue* queue_ = nullptr;
  CostModel* costs_ = nullptr;
  bool costing_ = false;
};

class PlanMasterWork : public MasterWork {
 public:
  PlanMasterWork(EventQueue& queue, CostModel& costs, PlanNet& net, const Traffic& traffic)
      : queue_(queue), costs_(costs), net_(net), traffic_(traffic) {}
  void merge(master_command::StartMerge job,
             std::function<void(Result<MergeResult>)> done) override;
  // What is merged ahead of order is part of what a merge costs.
  void expect(master_command::StartMerge) override {}
  void enter_stage(std::uint32_t stage, std::string state,
                   std::function<void(Result<Version>)> done) override;
  // A plan's tests take no time: they show what has been learned, and would not be part of a run.
  void test(std::function<void(Result<std::vector<TestScores>>)> done) override;
  void snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) override;
  // A plan's store is always there, and has room for all.
  void stop_tests() override {}
  void watch(Instant /*now*/, std::function<void(Result<void>)> /*seen*/) override {}
  void erase_worker(WorkerId /*worker*/) override {}
  void stop_waiting() override {}

 private:
  EventQueue& queue_;
  CostModel& costs_;
  PlanNet& net_;
  const Traffic traffic_;
};

class PlanWorkerWork : public WorkerWork {
 public:
  PlanWorkerWork(EventQueue& queue, CostModel& costs, PlanNet& net, const Traffic& traffic,
                 std::uint64_t steps, std::size_t place)
      : queue_(queue), costs_(costs), net_(net), traffic_(traffic), steps_(steps), place_(place) {}
  void prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) override;
  // read, compute, write; the elastic kind computes, reads, writes. The net's run happens when the
  // weights have been read: those are the ones that it is computed from.
  void run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) override;
  // A plan's master does not vanish.
  void look_for_end(std::uint64_t term, std::function<void(bool)> done) override;
  void cancel() override {}
  std::uint64_t progress() const override { return progress_; }

 private:
  struct Run;
  void finish(const std::shared_ptr<Run>& run);

  EventQueue& queue_;
  CostModel& costs_;
  PlanNet& net_;
  const Traffic traffic_;
  const std::uint64_t steps_;
  const std::size_t place_;
  WorkerId worker_{};
  std::uint64_t progress_ = 0;
};

}  // namespace speedo::sim
