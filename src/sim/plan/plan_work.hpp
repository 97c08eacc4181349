#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/cost_model.hpp"
#include "sim/network.hpp"
#include "sim/plan/plan_merger.hpp"
#include "sim/plan/plan_net.hpp"
#include "sim/plan/plan_run.hpp"
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
  PlanMasterWork(const RunParts& parts, PlanNet& net)
      : queue_(parts.queue), merger_(parts), net_(net) {}
  void merge(MergeJob job,
             std::function<void(Result<MergeResult>)> done) override;
  void expect(MergeJob job) override { merger_.expect(job); }
  void enter_stage(std::uint32_t stage, std::string state,
                   std::function<void(Result<Version>)> done) override;
  // A plan's tests take no time: they show what has been learned, and would not be part of a run.
  void test(std::function<void(Result<std::vector<TestScores>>)> done) override;
  void snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) override;
  // A plan's store is always there, and has room for all.
  void stop_tests() override {}
  void watch(Instant /*now*/, std::function<void(Result<void>)> /*seen*/) override {}
  void erase_worker(WorkerId /*worker*/) override {}
  // A plan's snapshots have no states.
  void finish_snapshot(const master_command::FinishSnapshot& command) override;
  void erase_seat(std::uint64_t seat) override;
  void stop_waiting() override {}

  Instant busy() const { return merger_.busy(); }

 private:
  EventQueue& queue_;
  PlanMergers merger_;
  PlanNet& net_;
};

class PlanWorkerWork : public WorkerWork {
 public:
  PlanWorkerWork(const RunParts& parts, PlanNet& net, std::size_t place)
      : parts_(parts), net_(net), place_(place) {}
  void prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) override;
  // The net's run happens when the weights that it is computed from are known.
  void run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) override;
  void save_state(const SaveStateMessage& order, std::function<void(Result<void>)> done) override;
  // A plan's master does not vanish.
  void look_for_end(std::uint64_t term, std::function<void(bool)> done) override;
  void cancel() override {}
  void withdraw() override {}
  std::uint64_t progress() const override { return progress_; }

 private:
  const RunParts parts_;
  PlanNet& net_;
  const std::size_t place_;
  WorkerId worker_{};
  bool has_weights_ = false;  // those of an earlier run
  std::uint64_t progress_ = 0;
};

}  // namespace speedo::sim
