#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/generated_feeds.hpp"

#include <speedo/core/solver.hpp>
#include <speedo/store/memory_store.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/trainer.hpp>

#include "cpu/cpu_backend.hpp"
#include "train/job_nets.hpp"
#include "train/job_solver.hpp"

namespace speedo::test {

inline TrainerParts cpu_parts() {
  return {.make_backend = []() -> Result<std::unique_ptr<Backend>> { return make_cpu_backend(1); },
          .make_feeds = []() -> std::unique_ptr<FeedFactory> {
            return std::make_unique<GeneratedFeeds>();
          }};
}

// Calls an asynchronous function and waits for what it gives its callback.
template <class T, class Call>
T await(Call call) {
  std::promise<T> answer;
  call([&](T value) { answer.set_value(std::move(value)); });
  return answer.get_future().get();
}

// Trainers, merger and store of one job, with the test in the place of the sessions.
class TrainerCluster {
 public:
  TrainerCluster(JobSpec spec, std::uint64_t workers) : job_(std::move(spec)) {
    auto nets =
        JobNets::create(cpu_parts(), {.job = job_, .with_tests = false, .initial_weights = {}});
    REQUIRE(nets);
    const ParameterLayout layout = (*nets)->layout();
    model_ = layout.digest();
    auto merger = make_merger({.update = job_.update}, layout, (*nets)->solver(),
                              (*nets)->take_first_weights(), Version{0}, store_,
                              cpu_parts().make_backend);
    REQUIRE(merger);
    merger_ = std::move(merger).value();
    REQUIRE(await<Result<Version>>([&](auto done) { merger_->publish(done); }));
    for (std::uint64_t worker = 0; worker < workers; ++worker) {
      trainers_.push_back(make_trainer(cpu_parts()));
      const auto model = await<Result<Digest>>(
          [&](auto done) { trainers_.back()->prepare(WorkerId{worker}, job_, store_, done); });
      REQUIRE(model);
      REQUIRE(*model == model_);
    }
  }

  // All workers train one run from the newest weights; their contributions become one iteration.
  void round() {
    master_command::StartMerge merge{.merge = {}, .iteration = iteration_, .contributions = {},
                                     .mean = trainers_.size() > 1};
    std::vector<std::future<Result<RunReport>>> reports;
    for (std::uint64_t worker = 0; worker < trainers_.size(); ++worker) {
      const RunId run{runs_++};
      auto answer = std::make_shared<std::promise<Result<RunReport>>>();
      reports.push_back(answer->get_future());
      trainers_[worker]->run(
          TrainMessage{.run = run.value,
                       .iteration = iteration_ * job_.steps_per_run,
                       .version = iteration_,
                       .data_run = run.value,
                       .next_data_run = run.value + trainers_.size()},
          [answer](Result<RunReport> report) { answer->set_value(std::move(report)); });
      merge.contributions.push_back({WorkerId{worker}, run, 1.0F});
    }
    for (auto& report : reports) {
      const auto value = report.get();
      REQUIRE(value);
      losses_.push_back(value->loss);
      CHECK(value->base.value == iteration_);
    }
    const auto result = await<Result<MergeResult>>(
        [&](auto done) { merger_->merge(std::move(merge), done); });
    REQUIRE(result);
    REQUIRE(result->rejected.empty());
    iteration_ += 1;
    REQUIRE(result->version == Version{iteration_});
  }

  std::vector<float> weights() {
    return await<Merger::Copy>([&](auto done) { merger_->copy(done); }).weights;
  }

  const std::vector<float>& losses() const { return losses_; }
  Trainer& trainer(std::size_t index) { return *trainers_[index]; }
  std::shared_ptr<ParameterStore> store() { return store_; }
  const Digest& model() const { return model_; }

 private:
  JobSpec job_;
  std::shared_ptr<ParameterStore> store_ = make_memory_store();
  Digest model_;
  std::unique_ptr<Merger> merger_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::uint64_t runs_ = 0, iteration_ = 0;
  std::vector<float> losses_;
};

// The weights after `iterations` of the same solver in one process, without a cluster.
inline std::vector<float> train_alone(const std::string& solver_text, int iterations) {
  auto solver = parse_solver(JobSpec{.solver_text = solver_text, .base = {}});
  REQUIRE(solver);
  const auto backend = make_cpu_backend(1);
  GeneratedFeeds feeds;
  auto alone = Solver::create(*solver, {.backend = backend.get(), .feeds = &feeds, .base = {}}, {});
  if (!alone) FAIL(alone.error().message);
  REQUIRE((*alone)->step(iterations));
  const Arena& arena = (*alone)->net().weights();
  std::vector<float> weights(static_cast<std::size_t>(arena.size()));
  backend->download(weights, arena.data());
  return weights;
}

}  // namespace speedo::test
