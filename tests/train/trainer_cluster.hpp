#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/generated_parts.hpp"

#include <speedo/core/solver.hpp>
#include <speedo/store/memory_store.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/trainer.hpp>

#include "store/shared/memory_exchange.hpp"
#include "support/kernels.hpp"
#include "train/job/job_nets.hpp"
#include "train/job/job_solver.hpp"
#include "train/parts/joined_steps.hpp"
#include "train/states/saved_states.hpp"

namespace speedo::test {

// Calls an asynchronous function and waits for what it gives its callback.
template <class T, class Call>
T await(Call call) {
  std::promise<T> answer;
  call([&](T value) { answer.set_value(std::move(value)); });
  return answer.get_future().get();
}

template <class T>
T value_of(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return std::move(result).value();
}

// cpu_parts() on the device that this process was told to use.
inline TrainerParts trainer_parts() {
  TrainerParts parts = cpu_parts();
  parts.make_backend = []() -> Result<std::unique_ptr<Backend>> { return make_backend(1); };
  parts.shares_memory = kernel_choice().shared_memory;
  parts.ahead_bytes_min = 0;
  return parts;
}

// The largest difference, relative to the largest of `b`.
inline double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
    size = std::max(size, std::abs(static_cast<double>(b[i])));
  }
  REQUIRE(size > 0.0);
  return difference / size;
}

// Trainers, merger and store of one job, with the test in the place of the sessions. What a session
// would have to remember is the state that it publishes: merges done and runs given out.
class TrainerCluster {
 public:
  struct Options {
    std::shared_ptr<RecordStore> store = make_memory_store();
    const Checkpoint* from = nullptr;  // null: the job's start
    std::shared_ptr<const caffe::SolverState> initial_state = nullptr;
    std::uint64_t publish_interval = 0;
    TrainerParts parts = trainer_parts();
    // Of replicated updates: steps are made in parts, one a server of the store, which is a
    // ParameterStore then; null: by the merger.
    std::shared_ptr<PartDesk> desk = nullptr;
  };

  TrainerCluster(JobSpec spec, std::uint64_t workers, Options options)
      : job_(std::move(spec)),
        store_(options.store),
        has_interval_(options.publish_interval != 0),
        parts_(options.parts) {
    auto nets = value_of(JobNets::create(parts_, {.job = job_,
                                                       .with_tests = false,
                                                       .initial_weights = {},
                                                       .initial_state = options.initial_state}));
    layout_ = nets->layout();
    Checkpoint start = options.from != nullptr ? *options.from : nets->take_start();
    if (!start.session.empty()) {
      const std::size_t space = start.session.find(' ');
      iteration_ = std::stoull(start.session.substr(0, space));
      runs_ = std::stoull(start.session.substr(space));
    }
    is_replicated_ = std::ranges::any_of(job_.stages, &UpdateSpec::replicated);
    if (parts_.shares_memory && !is_replicated_) shared_ = std::make_shared<SharedStore>(store_);
    config_ = {.stages = job_.stages,
               .publish_interval = options.publish_interval,
               .ahead_bytes_min = 0,
               .shared = shared_,
               .factor_shapes = nets->factor_shapes(),
               .expected_workers = job_.expected_workers};
    MergerConfig config = config_;
    if (options.desk) {
      config.step_parts = std::make_shared<JoinedSteps>(
          step_setup(0, std::dynamic_pointer_cast<ParameterStore>(store_)), options.desk);
    }
    merger_ = value_of(make_merger(config, layout_, nets->solver(), std::move(start), store(),
                                   parts_.make_backend));
    enter_stage(0);
    for (std::uint64_t worker = 0; worker < workers; ++worker) add_worker();
  }
  TrainerCluster(JobSpec spec, std::uint64_t workers)
      : TrainerCluster(std::move(spec), workers, Options{}) {}

  void add_worker() {
    workers_.push_back({make_trainer(parts_), {}});
    prepare(workers_.size() - 1);
  }

  // A new incarnation of a worker.
  void prepare(std::size_t worker) {
    workers_[worker].merged_run = kNoRun;
    const std::string key = contribution_key(0, worker);
    Trainer::Incarnation incarnation{WorkerId{worker}, key, job_, store_};
    if (shared_) {
      incarnation.memory =
          std::make_shared<WorkerMemory>(store_, meet_directly(shared_, 0), key);
      incarnation.store = incarnation.memory->store();
    }
    const Digest model = value_of(await<Result<Digest>>(
        [&](auto done) { trainer(worker).prepare(std::move(incarnation), done); }));
    REQUIRE(model == layout_.digest());
  }

  void enter_stage(std::uint32_t stage) {
    version_ = value_of(await<Result<Version>>(
        [&](auto done) { merger_->enter_stage(stage, state(), done); }));
    stage_ = stage;
  }

  // What the next run of a worker is ordered to do.
  TrainMessage order(std::size_t worker) {
    const std::uint64_t run = runs_++;
    return {.run = run,
            .iteration = iteration_ * job_.stages[stage_].steps_per_run,
            .version = version_.value,
            .first_step = run * job_.stages[stage_].steps_per_run,
            .next_step = (run + workers_.size()) * job_.stages[stage_].steps_per_run,
            .stage = stage_,
            .merged_run = workers_[worker].merged_run,
            .merged_weight_bits = std::bit_cast<std::uint32_t>(workers_[worker].merged_weight),
            .seat = std::exchange(workers_[worker].seat, kNoSeat)};
  }

  // One run of one worker.
  RunReport train(std::size_t worker) { return train(worker, order(worker)); }
  RunReport train(std::size_t worker, const TrainMessage& message) {
    return start(worker, message).get();
  }

  // One run of several workers at once, from the same weights.
  std::vector<RunReport> train_all() {
    std::vector<std::future<RunReport>> answers;
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      answers.push_back(start(worker, order(worker)));
    }
    std::vector<RunReport> reports;
    for (auto& answer : answers) reports.push_back(answer.get());
    return reports;
  }

  // Merges what the workers contributed last.
  MergeResult merge(const std::vector<std::size_t>& workers, bool mean, float weight = 1.0F) {
    const MergeResult result = try_merge(workers, mean, weight);
    REQUIRE(result.rejected.empty());
    REQUIRE(result.version == Version{version_.value + 1});
    version_ = result.version;
    for (const std::size_t worker : workers) {
      workers_[worker].merged_run = workers_[worker].run.value;
      workers_[worker].merged_weight = weight;
    }
    return result;
  }
  // The same of contributions that may be at fault. As a session does, workers are told of a new
  // version.
  MergeResult merge_some(const std::vector<std::size_t>& workers) {
    const MergeResult result = try_merge(workers, true, 1.0F);
    version_ = result.version;
    return result;
  }
  // That merge is likely to come.
  void expect(const std::vector<std::size_t>& workers, bool mean) {
    merger_->expect(job_for(workers, mean, 1.0F));
  }
  MergeResult try_merge(const std::vector<std::size_t>& workers, bool mean, float weight) {
    MergeJob job = job_for(workers, mean, weight);
    iteration_ += 1;
    job.state = state();
    return value_of(await<Result<MergeResult>>([&](auto done) { merger_->merge(job, done); }));
  }

  // All workers train one run from the newest weights; their contributions become one iteration.
  void round() {
    std::vector<std::size_t> all;
    for (const RunReport& report : train_all()) {
      losses_.push_back(report.loss);
      CHECK(report.base == version_);
      all.push_back(all.size());
    }
    merge(all, workers_.size() > 1);
  }

  // The same, and every worker has done as many pieces of work ahead of its next order.
  void round_and_wait(std::uint64_t pieces) {
    std::vector<std::size_t> all;
    for (const RunReport& report : train_all()) {
      CHECK(report.base == version_);
      all.push_back(all.size());
    }
    std::vector<std::uint64_t> before;
    for (const std::size_t worker : all) before.push_back(trainer(worker).progress());
    merge(all, workers_.size() > 1);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (const std::size_t worker : all) {
      while (trainer(worker).progress() < before[worker] + pieces) {
        if (std::chrono::steady_clock::now() > deadline) FAIL("nothing was read ahead");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  // What every worker has alone, as a snapshot of this moment has it. `without_last`: of weights
  // without what the workers have trained last.
  SavedStates save_states(bool without_last = false) {
    std::vector<StateOfWorker> states;
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      const Worker& each = workers_[worker];
      const SaveStateMessage order{
          .worker = worker,
          .iteration = iteration_,
          .merged_run = each.merged_run,
          .merged_weight_bits = std::bit_cast<std::uint32_t>(each.merged_weight),
          .open_run = without_last ? each.run.value : kNoRun};
      const auto saved =
          await<Result<void>>([&](auto done) { trainer(worker).save_state(order, done); });
      if (!saved) FAIL(saved.error().message);
      states.push_back(value_of(get_state(*store_, state_key(0, worker), model(),
                                          static_cast<std::uint64_t>(layout_.element_count()))));
    }
    return {states.size(), [states](std::size_t k) { return Result<StateOfWorker>(states[k]); }};
  }
  // The first workers take them with their first orders.
  void deal(const SavedStates& states, std::uint64_t seats) {
    const StateOwner owner{model(), value_of(parse_solver(job_)).type(), job_.stages,
                           job_.expected_workers, job_.offset_shards};
    REQUIRE(deal_states(states, seats, 0, owner, *store_));
    for (std::uint64_t seat = 0; seat < seats; ++seat) workers_[seat].seat = seat;
  }

  // Of the merger of one part of the steps; its store is its own.
  PartSetup step_setup(std::size_t part, std::shared_ptr<ParameterStore> store) const {
    const std::size_t parts = store->parts();
    return {.clip = {part, parts},
            .config = config_,
            .layout = layout_,
            .solver = {},
            .store = std::move(store),
            .make_backend = parts_.make_backend,
            .has_copies = false};
  }

  Merger::Copy copy() {
    return value_of(await<Result<Merger::Copy>>([&](auto done) { merger_->copy(done); }));
  }
  std::vector<float> weights() { return copy().weights; }
  // The newest checkpoint in the store.
  Checkpoint checkpoint() {
    copy();  // Ends what is written behind the last merge.
    // What is in shared memory follows into the store as soon as nothing is merged for a while.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (true) {
      auto found = value_of(read_checkpoint(*store_, layout_, wants_histories(job_.stages)));
      const bool lags = shared_ || is_replicated_;
      if (!lags || has_interval_ || found.version == version_) return found;
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  const std::vector<float>& losses() const { return losses_; }
  Trainer& trainer(std::size_t index) { return *workers_[index].trainer; }
  // As the merger sees it.
  std::shared_ptr<RecordStore> store() {
    if (shared_) return shared_;
    return store_;
  }
  Digest model() const { return layout_.digest(); }
  const ParameterLayout& layout() const { return layout_; }
  std::uint64_t iteration() const { return iteration_; }
  Version version() const { return version_; }
  std::string state() const { return std::to_string(iteration_) + " " + std::to_string(runs_); }
  void scale_rate(float scale) { lr_scale_ = scale; }

 private:
  struct Worker {
    std::unique_ptr<Trainer> trainer;
    RunId run;  // the last
    std::uint64_t merged_run = kNoRun;
    float merged_weight = 1.0F;
    std::uint64_t seat = kNoSeat;
  };

  // Without a state.
  MergeJob job_for(const std::vector<std::size_t>& workers, bool mean, float weight) const {
    MergeJob job{};
    job.iteration = iteration_;
    job.mean = mean;
    job.stage = stage_;
    job.lr_scale = lr_scale_;
    for (const std::size_t worker : workers) {
      job.contributions.push_back({WorkerId{worker}, workers_[worker].run, weight});
    }
    return job;
  }

  std::future<RunReport> start(std::size_t worker, TrainMessage message) {
    message.lr_scale_bits = std::bit_cast<std::uint32_t>(lr_scale_);
    auto answer = std::make_shared<std::promise<Result<RunReport>>>();
    workers_[worker].run = RunId{message.run};
    workers_[worker].merged_run = kNoRun;
    trainer(worker).run(message, [answer](Result<RunReport> report) {
      answer->set_value(std::move(report));
    });
    return std::async(std::launch::deferred,
                      [answer] { return value_of(answer->get_future().get()); });
  }

  JobSpec job_;
  std::shared_ptr<RecordStore> store_;
  bool has_interval_;  // of its checkpoints
  bool is_replicated_ = false;
  std::shared_ptr<SharedStore> shared_;  // before it; null: no memory is shared
  TrainerParts parts_;
  ParameterLayout layout_;
  MergerConfig config_;  // but for who makes steps
  std::unique_ptr<Merger> merger_;
  std::vector<Worker> workers_;
  std::uint32_t stage_ = 0;
  Version version_;
  std::uint64_t runs_ = 0, iteration_ = 0;
  float lr_scale_ = 1.0F;
  std::vector<float> losses_;
};

// The weights after `iterations` of the same solver in one process, without a cluster.
inline std::vector<float> train_alone(const std::string& solver_text, int iterations) {
  auto solver = parse_solver(JobSpec{.solver_text = solver_text, .base = {}});
  REQUIRE(solver);
  const auto backend = test::make_backend(1);
  GeneratedFeeds feeds;
  auto alone = Solver::create(*solver, {.backend = backend.get(), .feeds = &feeds, .base = {}}, {});
  if (!alone) FAIL(alone.error().message);
  REQUIRE((*alone)->step(iterations));
  const Arena& arena = (*alone)->net().weights();
  std::vector<float> weights(static_cast<std::size_t>(arena.size()));
  backend->device().download(weights, arena.data());
  return weights;
}

// Rounds before version `end`: every digest that a worker reports must be the master's. Returns how
// many there were.
inline int count_equal_digests(TrainerCluster& cluster, std::uint64_t end) {
  std::optional<WeightsCheck> masters;
  int compared = 0;
  while (cluster.version().value < end) {
    std::vector<std::size_t> all;
    for (const RunReport& report : cluster.train_all()) {
      all.push_back(all.size());
      if (!report.check) continue;
      REQUIRE(masters);
      CHECK(*report.check == *masters);
      ++compared;
    }
    masters = cluster.merge(all, true).check;
  }
  return compared;
}

}  // namespace speedo::test
