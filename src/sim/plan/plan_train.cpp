#include "sim/plan/plan_train.hpp"

#include <atomic>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/store/memory_store.hpp>
#include <speedo/store/record_store.hpp>

#include "base/answer.hpp"
#include "train/job/job_nets.hpp"
#include "train/merge/merger_engine.hpp"
#include "train/trainer/trainer_engine.hpp"

namespace speedo::sim {
namespace {

constexpr std::uint64_t kTerm = 0;  // There never is another master.
// Nobody resumes a plan: checkpoints of histories would only take time.
constexpr std::uint64_t kNeverPublish = std::numeric_limits<std::uint64_t>::max();

class TrainedNet : public PlanNet {
 public:
  static Result<std::unique_ptr<PlanNet>> create(const TrainerParts& parts,
                                                 const TrainedNetOptions& options);

  Digest model() const override { return nets_->layout().digest(); }
  Result<Version> enter_stage(std::uint32_t stage, const std::string& state) override {
    return merger_->enter_stage(stage, state);
  }
  Result<MergeResult> merge(const MergeJob& job) override {
    return merger_->merge(job);
  }
  Result<RunReport> run(std::size_t place, WorkerId worker, const TrainMessage& order) override;
  Result<std::vector<TestScores>> test() override;

 private:
  TrainedNet(const TrainerParts& parts, const TrainedNetOptions& options)
      : parts_(parts), job_(options.job), samples_(options.samples), engines_(options.workers) {
    job_.stages = {options.schedule.update};
    job_.expected_workers = options.workers;
  }
  Result<void> build();

  const TrainerParts parts_;
  JobSpec job_;
  const std::uint64_t samples_;
  const std::shared_ptr<RecordStore> store_ = make_memory_store("plan");
  std::unique_ptr<JobNets> nets_;
  std::unique_ptr<MergerEngine> merger_;
  std::atomic<std::uint64_t> progress_{0};
  std::vector<std::unique_ptr<TrainerEngine>> engines_;  // by place; made with the first run
};

Result<std::unique_ptr<PlanNet>> TrainedNet::create(const TrainerParts& parts,
                                                    const TrainedNetOptions& options) {
  std::unique_ptr<TrainedNet> net(new TrainedNet(parts, options));
  SPEEDO_TRY(net->build());
  return std::unique_ptr<PlanNet>(std::move(net));
}

Result<void> TrainedNet::build() {
  JobNetsOptions options;
  options.job = job_;
  options.with_tests = true;
  SPEEDO_ASSIGN(nets_, JobNets::create(parts_, std::move(options)));
  MergerConfig config;
  config.stages = job_.stages;
  config.publish_interval = kNeverPublish;
  config.term = kTerm;
  config.threads = 1;
  SPEEDO_ASSIGN(merger_, MergerEngine::create(config, nets_->layout(), nets_->solver(),
                                              nets_->take_start(), store_, parts_.make_backend));
  return {};
}

Result<RunReport> TrainedNet::run(std::size_t place, WorkerId worker, const TrainMessage& order) {
  SPEEDO_ASSERT(place < engines_.size());
  std::unique_ptr<TrainerEngine>& engine = engines_[place];
  if (!engine) {
    TrainerEngine::Incarnation incarnation{worker, contribution_key(kTerm, worker.value), job_,
                                           store_};
    SPEEDO_ASSIGN(engine, TrainerEngine::create(parts_, std::move(incarnation), progress_));
  }
  SPEEDO_ASSIGN(RunReport report, engine->run(order, [] { return false; }));
  report.samples = samples_ * order.shards;
  return report;
}

Result<std::vector<TestScores>> TrainedNet::test() {
  auto weights = std::make_shared<Merger::Copy>(merger_->copy());
  Answer<Result<JobNets::Scores>> tested(*parts_.platform);
  nets_->test(std::move(weights), [&tested](Result<JobNets::Scores> scores) {
    tested.set(std::move(scores));
  });
  SPEEDO_ASSIGN(JobNets::Scores scores, tested.wait());
  if (scores.empty()) {
    return Error{ErrorCode::kConfig, "the solver has no test net: add test_iter, test_interval"};
  }
  return scores;
}

}  // namespace

Result<std::unique_ptr<PlanNet>> make_trained_net(const TrainerParts& parts,
                                                  const TrainedNetOptions& options) {
  SPEEDO_ASSERT(options.workers >= 1);
  return TrainedNet::create(parts, options);
}

ClusterCosts without_cluster(const ClusterCosts& cluster) {
  ClusterCosts alone;
  alone.title = cluster.title;
  alone.net = cluster.net;
  alone.machines = {cluster.machines.front()};
  alone.machines.front().count = 1;
  alone.store.machine = alone.master.machine = alone.machines.front().name;
  return alone;
}

std::optional<double> seconds_to_loss(const std::vector<PlanPoint>& curve, double loss) {
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const double here = static_cast<double>(curve[i].loss);
    if (!(here <= loss)) continue;
    if (i == 0) return curve[i].seconds;
    const double before = static_cast<double>(curve[i - 1].loss);
    if (!(before > here)) return curve[i].seconds;
    const double part = (before - loss) / (before - here);
    return curve[i - 1].seconds + part * (curve[i].seconds - curve[i - 1].seconds);
  }
  return std::nullopt;
}

}  // namespace speedo::sim
