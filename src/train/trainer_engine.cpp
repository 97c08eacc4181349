// One run of a worker:
//   W = what the kind of update starts from, straight into the net's arena
//   for each step s: g = gradient at W; u = rule(iteration + s, g); W -= u
//   contribution = what the kind of update makes of it: trainer_update.cpp, trainer_elastic.cpp

#include "train/trainer_engine.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

#include "train/job_solver.hpp"

namespace speedo {
namespace {

std::uint64_t whole_microseconds(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

std::uint64_t microseconds_since(Instant start) {
  return whole_microseconds(steady_clock().now() - start);
}

// With shards of their own, workers begin at different places of the data.
double start_fraction(const TrainerEngine::Life& life) {
  if (!life.job.offset_shards) return 0.0;
  return static_cast<double>(life.worker.value % life.job.expected_workers) /
         static_cast<double>(life.job.expected_workers);
}

Result<void> check_job(const JobSpec& job) {
  SPEEDO_ASSERT(!job.stages.empty() && job.expected_workers > 0);
  for (const UpdateSpec& stage : job.stages) {
    SPEEDO_ASSERT(stage.steps_per_run > 0);
    if (stage.kind == UpdateKind::kGradientOnly && stage.steps_per_run != 1) {
      return Error{
          ErrorCode::kConfig,
          fmt::format("gradient only: a run has one step, the job says {}; use --train 1",
                      stage.steps_per_run)};
    }
  }
  return {};
}

Result<void> check_order(const TrainMessage& order, const JobSpec& job) {
  const float scale = std::bit_cast<float>(order.lr_scale_bits);
  if (order.stage >= job.stages.size() || order.data_runs == 0 ||
      order.data_runs > kSharesPerRunMax || !std::isfinite(scale) ||
      scale < 0.0F) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("run {}: stage {} of {}, {} shares, rate times {}: not an order for "
                             "this job; use the same version for master and workers",
                             order.run, order.stage, job.stages.size(), order.data_runs, scale)};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<TrainerEngine>> TrainerEngine::create(
    const TrainerParts& parts, Life life, std::atomic<std::uint64_t>& progress) {
  SPEEDO_TRY(check_job(life.job));
  auto engine = std::unique_ptr<TrainerEngine>(new TrainerEngine(progress));
  engine->life_ = std::move(life);
  SPEEDO_TRY(engine->build(parts));
  engine->connect();
  // Errors of the solver's fields are those of the job, not of the first run.
  SPEEDO_TRY(engine->enter_stage(0));
  return engine;
}

Result<void> TrainerEngine::build(const TrainerParts& parts) {
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver(life_.job));
  solver_ = without_tests(std::move(solver));
  for (const UpdateSpec& stage : life_.job.stages) {
    SPEEDO_TRY(UpdateRule::history_count(solver_of(solver_, stage)));
  }
  if (parts.choose_kernels) SPEEDO_TRY(parts.choose_kernels(life_.job));
  SPEEDO_ASSIGN(backend_, parts.make_backend());
  feeds_ = parts.make_feeds();
  const SolverOptions options{.backend = backend_.get(),
                              .feeds = feeds_.get(),
                              .base = life_.job.base,
                              .start_fraction = start_fraction(life_)};
  if (parts.admit) SPEEDO_TRY(parts.admit(life_.job, solver_, options));
  SPEEDO_ASSIGN(nets_, create_nets(solver_, options));
  nets_.train->count_layers(&progress_);
  const ParameterLayout& layout = nets_.train->layout();
  model_ = layout.digest();
  host_ = std::make_unique<HostView>(*backend_, static_cast<std::size_t>(layout.element_count()));
  return {};
}

void TrainerEngine::connect() {
  update_.reset();
  stage_.reset();
  exchange_ = std::make_unique<RecordExchange>(life_.store, model_, life_.worker,
                                               life_.contribution, progress_);
}

bool TrainerEngine::begin_life(const Life& life) {
  const JobSpec& job = life.job;
  const bool fits = job.solver_text == life_.job.solver_text && job.base == life_.job.base &&
                    job.stages == life_.job.stages &&
                    job.offset_shards == life_.job.offset_shards &&
                    job.deterministic == life_.job.deterministic &&
                    start_fraction(life) == start_fraction(life_);
  if (!fits) return false;
  life_ = life;
  connect();
  return true;
}

// A rule for the stage's rates, with the histories of the one before.
Result<void> TrainerEngine::make_rule(const UpdateSpec& update) {
  SPEEDO_ASSIGN(std::unique_ptr<UpdateRule> rule,
                UpdateRule::create(solver_of(solver_, update), nets_.train->layout(), *backend_));
  if (rule_) {
    const std::vector<Arena*> old = rule_->histories(), carried = rule->histories();
    for (std::size_t i = 0; i < old.size(); ++i) std::swap(*old[i], *carried[i]);
  }
  rule_ = std::move(rule);
  rule_spec_ = update;
  return {};
}

Result<void> TrainerEngine::enter_stage(std::uint32_t stage) {
  const UpdateSpec& update = life_.job.stages[stage];
  update_.reset();
  stage_.reset();
  const bool has_rule = rule_ && rule_spec_.base_lr == update.base_lr &&
                        rule_spec_.momentum == update.momentum &&
                        rule_spec_.weight_decay == update.weight_decay;
  if (update.kind != UpdateKind::kGradientOnly && !has_rule) SPEEDO_TRY(make_rule(update));
  update_ = make_worker_update(update, {.net = *nets_.train,
                                        .rule = rule_.get(),
                                        .host = *host_,
                                        .exchange = *exchange_});
  stage_ = stage;
  return {};
}

Result<RunReport> TrainerEngine::run(const TrainMessage& order,
                                     std::function<bool()> cancelled) {
  SPEEDO_TRY(check_order(order, life_.job));
  exchange_->allow_cancel(std::move(cancelled));
  if (stage_ != order.stage) SPEEDO_TRY(enter_stage(order.stage));
  const Instant start = steady_clock().now();
  SPEEDO_ASSIGN(std::uint64_t base, update_->begin(order));
  const std::uint64_t read_us = microseconds_since(start);

  const Instant compute_start = steady_clock().now();
  const std::chrono::nanoseconds waited = feeds_->totals().waited;
  begin_steps(order);
  SPEEDO_ASSIGN(const float loss, compute(order));
  const std::uint64_t steps_us = microseconds_since(compute_start);
  const std::uint64_t data_wait_us =
      std::min(steps_us, whole_microseconds(feeds_->totals().waited - waited));
  shares_done_ += order.data_runs;

  const Instant write_start = steady_clock().now();
  if (std::isfinite(loss)) {
    SPEEDO_ASSIGN(base, update_->contribute(order, base));
  } else {
    update_->diverged();
  }
  return RunReport{.run = RunId{order.run},
                   .loss = loss,
                   .base = Version{base},
                   .samples = samples_of(order),
                   .compute_us = steps_us - data_wait_us,
                   .exchange_us = read_us + microseconds_since(write_start),
                   .data_wait_us = data_wait_us};
}

void TrainerEngine::begin_steps(const TrainMessage& order) {
  point_feeds(order);
  if (!rule_) return;
  rule_->scale_rate(std::bit_cast<float>(order.lr_scale_bits));
  if (spec().updater != UpdaterState::kReset) return;
  for (Arena* history : rule_->histories()) {
    backend_->fill(history->size(), 0.0F, history->data());
  }
}

std::uint64_t TrainerEngine::batches_per_share() const {
  return std::uint64_t{spec().steps_per_run} *
         static_cast<std::uint64_t>(std::max(solver_.iter_size(), 1));
}

// A worker with a shard of its own counts its own runs; otherwise the master deals out the stream.
void TrainerEngine::point_feeds(const TrainMessage& order) {
  const std::uint64_t batches = batches_per_share();
  const bool own = life_.job.offset_shards;
  const std::uint64_t share = own ? shares_done_ : order.data_run;
  const std::uint64_t next = own ? shares_done_ + order.data_runs : order.next_data_run;
  nets_.train->set_data_span(DataSpan{
      .first = share * batches, .count = order.data_runs * batches, .next = next * batches});
}

Result<float> TrainerEngine::compute(const TrainMessage& order) {
  double loss_sum = 0.0;
  for (std::uint32_t step = 0; step < spec().steps_per_run; ++step) {
    if (exchange_->is_cancelled()) {
      return Error{ErrorCode::kUnavailable, "run cancelled"};
    }
    SPEEDO_ASSIGN(const float loss, compute_step(order, step));
    loss_sum += loss;
    if (!std::isfinite(loss)) break;
  }
  return static_cast<float>(loss_sum / spec().steps_per_run);
}

// Several shares make one larger batch: the sum of their gradients is brought to the size of one's.
Result<float> TrainerEngine::compute_step(const TrainMessage& order, std::uint32_t step) {
  Net& net = *nets_.train;
  const int passes = std::max(solver_.iter_size(), 1) * static_cast<int>(order.data_runs);
  SPEEDO_ASSIGN(const float loss, accumulate_gradients(net, passes));
  Arena& gradients = net.gradients();
  if (order.data_runs > 1) {
    const float mean = 1.0F / static_cast<float>(order.data_runs);
    backend_->axpby(gradients.size(), mean, gradients.data(), 0.0F, gradients.data());
  }
  if (spec().kind == UpdateKind::kGradientOnly || !std::isfinite(loss)) return loss;
  const auto iteration = static_cast<std::int64_t>(order.iteration + step);
  const bool is_last = step + 1 == spec().steps_per_run;
  if (!is_last || update_->applies_last_update()) {
    rule_->update(iteration, net.weights().data(), gradients.data());
  } else {
    rule_->compute_update(iteration, net.weights().data(), gradients.data());
  }
  return loss;
}

std::uint64_t TrainerEngine::samples_of(const TrainMessage& order) const {
  for (const Net::LayerView& view : nets_.train->layers()) {
    const bool is_source = view.bottoms.empty() && !view.tops.empty();
    if (!is_source || view.tops[0]->shape().axes() == 0) continue;
    const auto batch = static_cast<std::uint64_t>(view.tops[0]->shape()[0]);
    return batch * batches_per_share() * order.data_runs;
  }
  return 0;
}

}  // namespace speedo
