#include "train/job/job_nets.hpp"

#include <atomic>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "base/answer.hpp"
#include "base/trace.hpp"
#include "core/net/net_outputs.hpp"
#include "core/weight_sources.hpp"
#include "train/job/job_solver.hpp"
#include "train/job/job_thread.hpp"

namespace speedo {

namespace {

class ThreadJobNets : public JobNets {
 public:
  explicit ThreadJobNets(Platform& platform) : platform_(platform), thread_(platform, "nets") {}
  ~ThreadJobNets() override {
    stop_tests();
    thread_.post([this] {  // Where they were made.
      rule_.reset();
      nets_ = SolverNets{};
      feeds_.reset();
      backend_.reset();
    });
  }
  Result<void> build(const TrainerParts& parts, const JobNetsOptions& options) {
    Answer<Result<void>> built(platform_);
    thread_.post([&] { built.set(build_here(parts, options)); });
    return built.wait();
  }

  const ParameterLayout& layout() const override { return layout_; }
  const caffe::SolverParameter& solver() const override { return solver_; }
  std::vector<FactorShape> factor_shapes() const override { return factor_shapes_; }
  Checkpoint take_start() override { return std::move(start_); }
  void test(std::shared_ptr<const Merger::Copy> weights,
            std::function<void(Result<Scores>)> done) override;
  void stop_tests() override { stopping_ = true; }
  void snapshot(std::uint64_t iteration, std::shared_ptr<const Merger::Copy> weights,
                WriteSnapshot write_files, std::function<void(Result<void>)> done) override;

 private:
  // On the nets' thread.
  Result<void> build_here(const TrainerParts& parts, const JobNetsOptions& options);
  Result<void> read_start(const JobNetsOptions& options);
  void load(const Merger::Copy& weights);
  Result<Scores> run_tests();
  Result<void> refuse_diverged(std::uint64_t iteration);
  Result<void> write(std::uint64_t iteration, const Merger::Copy& weights,
                     const WriteSnapshot& write_files);

  Platform& platform_;
  ParameterLayout layout_;
  std::vector<FactorShape> factor_shapes_;
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

Result<void> ThreadJobNets::build_here(const TrainerParts& parts, const JobNetsOptions& options) {
  SPEEDO_ASSIGN(solver_, parse_solver(options.job));
  if (parts.choose_kernels) SPEEDO_TRY(parts.choose_kernels(options.job));
  SPEEDO_ASSIGN(backend_, parts.make_backend());
  feeds_ = parts.make_feeds();
  const SolverOptions where{.backend = backend_.get(),
                            .feeds = feeds_.get(),
                            .base = options.job.base,
                            .logs_set_up = true};
  SPEEDO_ASSIGN(nets_, create_nets(options.with_tests ? solver_ : without_tests(solver_), where));
  layout_ = nets_.train->layout();
  if (solver_.iter_size() <= 1) factor_shapes_ = nets_.train->factor_shapes();
  SPEEDO_ASSIGN(rule_, UpdateRule::create(solver_, layout_, *backend_));
  return read_start(options);
}

Result<void> ThreadJobNets::read_start(const JobNetsOptions& options) {
  if (options.initial_weights) {
    WeightSources sources;
    SPEEDO_TRY(sources.copy("the model to start from", *options.initial_weights, *nets_.train));
    for (const auto& test : nets_.tests) {
      SPEEDO_TRY(test->copy_weights_from(*options.initial_weights));
    }
    SPEEDO_TRY(sources.check(*nets_.train, true));
  }
  const auto count = static_cast<std::size_t>(layout_.element_count());
  start_.weights.resize(count);
  backend_->device().download(start_.weights, nets_.train->weights().data());
  if (!options.initial_state || !wants_histories(options.job.stages)) return {};
  SPEEDO_TRY(rule_->load(*options.initial_state));
  for (const Arena* history : rule_->histories()) {
    backend_->device().download(start_.histories.emplace_back(count), history->data());
  }
  return {};
}

void ThreadJobNets::test(std::shared_ptr<const Merger::Copy> weights,
                   std::function<void(Result<Scores>)> done) {
  thread_.post([this, weights = std::move(weights), done = std::move(done)] {
    load(*weights);
    done(run_tests());
  });
}

void ThreadJobNets::snapshot(std::uint64_t iteration, std::shared_ptr<const Merger::Copy> weights,
                       WriteSnapshot write_files, std::function<void(Result<void>)> done) {
  thread_.post([this, iteration, weights = std::move(weights),
                write_files = std::move(write_files), done = std::move(done)] {
    const TraceSpan span("snapshot");
    load(*weights);
    done(write(iteration, *weights, write_files));
  });
}

void ThreadJobNets::load(const Merger::Copy& weights) {
  Arena& arena = nets_.train->weights();
  SPEEDO_ASSERT(weights.weights.size() == static_cast<std::size_t>(arena.size()));
  backend_->device().upload(arena.data(), weights.weights);
}

Result<JobNets::Scores> ThreadJobNets::run_tests() {
  Scores scores;
  for (std::size_t index = 0; index < nets_.tests.size(); ++index) {
    const int passes = solver_.test_iter(static_cast<int>(index));
    SPEEDO_ASSIGN(TestScores found, run_test(*nets_.tests[index], passes,
                                             [this] { return stopping_.load(); }));
    if (stopping_) return Error{ErrorCode::kUnavailable, "broken off"};
    scores.push_back(std::move(found));
  }
  return scores;
}

// One batch of the first test net tells, if there is one; a batch that cannot be read says nothing.
Result<void> ThreadJobNets::refuse_diverged(std::uint64_t iteration) {
  if (nets_.tests.empty()) return {};
  const auto tested = run_test(*nets_.tests.front(), 1);
  if (!tested || has_finite_losses(*tested)) return {};
  return Error{ErrorCode::kNotFinite,
               fmt::format("training has diverged: the weights of iteration {} give no finite test "
                           "loss, so no snapshot of them is written; lower base_lr, set "
                           "clip_gradients or check the data",
                           iteration)};
}

// A job without histories on the master gives its state file zeros, so that training can go on from
// it anywhere. The model is taken before the look at the test net, whose pass may change
// statistics.
Result<void> ThreadJobNets::write(std::uint64_t iteration, const Merger::Copy& weights,
                            const WriteSnapshot& write_files) {
  caffe::NetParameter model;
  nets_.train->to_proto(model, solver_.snapshot_diff());
  SPEEDO_TRY(refuse_diverged(iteration));
  const std::vector<Arena*> histories = rule_->histories();
  SPEEDO_ASSERT(weights.histories.empty() || weights.histories.size() == histories.size());
  for (std::size_t i = 0; i < histories.size(); ++i) {
    if (weights.histories.empty()) {
      backend_->fill(histories[i]->size(), 0.0F, histories[i]->data());
    } else {
      backend_->device().upload(histories[i]->data(), weights.histories[i]);
    }
  }
  const auto number = static_cast<std::int64_t>(iteration);
  caffe::SolverState state;
  rule_->save(state, number);
  return write_files(number, model, state, weights.state);
}

}  // namespace

Result<std::unique_ptr<JobNets>> JobNets::create(const TrainerParts& parts,
                                                 const JobNetsOptions& options) {
  if (parts.make_job_nets) return parts.make_job_nets(options);
  auto nets = std::make_unique<ThreadJobNets>(*parts.platform);
  SPEEDO_TRY(nets->build(parts, options));
  return std::unique_ptr<JobNets>(std::move(nets));
}

}  // namespace speedo
