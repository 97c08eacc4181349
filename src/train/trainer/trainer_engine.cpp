// One run of a worker:
//   W = what the kind of update starts from, straight into the net's arena, bucket by bucket as
//       the first pass needs them
//   for each step s: g = gradient at W; u = rule(iteration + s, g); W -= u
//   contribution = what the kind of update makes of it: trainer_update.cpp, trainer_elastic.cpp;
//       buckets of the last step go out while the gradients of others are still being computed

#include "train/trainer/trainer_engine.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "train/job/job_solver.hpp"
#include "train/replicas/factor_plan.hpp"
#include "train/replicas/replica_update.hpp"
#include "train/replicas/step_header.hpp"

namespace speedo {
namespace {

// Whoever was sent so often to the version after the one that it began from, is in a round: what
// comes next will be read.
constexpr int kRoundsToExpect = 2;
constexpr std::chrono::milliseconds kLostWeightsPoll{20};

std::uint64_t whole_microseconds(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::microseconds>(time).count());
}

// With shards of their own, workers begin at different places of the data.
double start_fraction(const TrainerEngine::Incarnation& incarnation) {
  if (!incarnation.job.offset_shards) return 0.0;
  const DataStart start = start_of(incarnation);
  return static_cast<double>(start.part) / static_cast<double>(start.parts);
}

Result<void> check_job(const JobSpec& job) {
  SPEEDO_ASSERT(!job.stages.empty() && job.expected_workers > 0);
  for (const UpdateSpec& stage : job.stages) {
    SPEEDO_ASSERT(stage.steps_per_run > 0);
    if (stage.kind == UpdateKind::kGradientOnly && stage.steps_per_run != 1) {
      return Error{ErrorCode::kConfig,
                   fmt::format("gradient only: a run has one step, the job says {}; use --train 1",
                               stage.steps_per_run)};
    }
  }
  return {};
}

Result<void> check_order(const TrainMessage& order, const JobSpec& job) {
  const float scale = std::bit_cast<float>(order.lr_scale_bits);
  if (order.stage >= job.stages.size() || order.shards == 0 ||
      order.shards > kShardsPerRunMax || !std::isfinite(scale) ||
      scale < 0.0F) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("run {}: stage {} of {}, {} shards, rate times {}: not an order for "
                             "this job; use the same version for master and workers",
                             order.run, order.stage, job.stages.size(), order.shards, scale)};
  }
  return {};
}

}  // namespace

DataStart start_of(const Trainer::Incarnation& incarnation) {
  const std::uint64_t workers = incarnation.job.expected_workers;
  return incarnation.start.value_or(DataStart{incarnation.worker.value % workers, workers});
}

Result<std::unique_ptr<TrainerEngine>> TrainerEngine::create(
    const TrainerParts& parts, Incarnation incarnation, std::atomic<std::uint64_t>& progress) {
  SPEEDO_TRY(check_job(incarnation.job));
  auto engine = std::unique_ptr<TrainerEngine>(new TrainerEngine(*parts.platform, progress));
  engine->incarnation_ = std::move(incarnation);
  SPEEDO_TRY(engine->build(parts));
  engine->connect();
  // Errors of the solver's fields are those of the job, not of the first run.
  SPEEDO_TRY(engine->enter_stage(0));
  return engine;
}

TrainerEngine::~TrainerEngine() {
  const double left = codec_.norm_left_at_end();
  if (left == 0.0) return;
  SPEEDO_INFO("of what this worker has computed the codec kept back updates of norm {:.3g}, which "
              "nobody will send any more", left);
}

Result<void> TrainerEngine::build(const TrainerParts& parts) {
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver(incarnation_.job));
  solver_ = without_tests(std::move(solver));
  for (const UpdateSpec& stage : incarnation_.job.stages) {
    SPEEDO_TRY(UpdateRule::history_count(solver_of(solver_, stage)));
  }
  const LearnerOptions options{.job = incarnation_.job,
                               .solver = solver_,
                               .start_fraction = start_fraction(incarnation_),
                               .progress = progress_};
  SPEEDO_ASSIGN(learner_, parts.make_learner ? parts.make_learner(options)
                                             : make_net_learner(parts, options));
  const ParameterLayout& layout = learner_->layout();
  model_ = layout.digest();
  codec_.set_layout(layout);
  host_ = std::make_unique<HostView>(learner_->backend().device(),
                                     static_cast<std::size_t>(layout.element_count()),
                                     parts.shares_memory);
  shares_memory_ = parts.shares_memory;
  ahead_bytes_min_ = parts.ahead_bytes_min;
  return {};
}

void TrainerEngine::connect() {
  update_.reset();
  stage_.reset();
  ended_at_.reset();
  base_.reset();
  rounds_ = 0;
  exchange_ = std::make_unique<RecordExchange>(
      RecordExchange::Options{.store = incarnation_.store,
                              .model = model_,
                              .worker = incarnation_.worker,
                              .term = incarnation_.term,
                              .contribution = incarnation_.contribution,
                              .codec = codec_,
                              .platform = platform_},
      progress_);
}

bool TrainerEngine::begin_incarnation(const Incarnation& incarnation) {
  const JobSpec& job = incarnation.job;
  const bool fits =
      job.solver_text == incarnation_.job.solver_text && job.base == incarnation_.job.base &&
      job.stages == incarnation_.job.stages &&
      job.offset_shards == incarnation_.job.offset_shards &&
      job.deterministic == incarnation_.job.deterministic &&
      (!job.offset_shards || job.expected_workers == incarnation_.job.expected_workers);
  if (!fits) return false;
  // Its place in the data stays, though its number is another: the others of this master keep
  // theirs. Another master admits all of them anew, and their numbers say all places.
  const bool is_same_master = incarnation.term == incarnation_.term;
  const DataStart start = start_of(is_same_master ? incarnation_ : incarnation);
  if (job.offset_shards && start != start_of(incarnation_)) return false;
  if (incarnation_.memory) earlier_memories_.push_back(std::move(incarnation_.memory));
  incarnation_ = incarnation;
  incarnation_.start = start;
  connect();
  return true;
}

// A rule for the stage's rates, with the histories of the one before.
Result<void> TrainerEngine::make_rule(const UpdateSpec& update) {
  SPEEDO_ASSIGN(std::unique_ptr<UpdateRule> rule,
                UpdateRule::create(solver_of(solver_, update), learner_->layout(),
                                   learner_->backend()));
  quiet_.reset();
  may_be_quiet_ = true;
  if (rule_) {
    const std::vector<Arena*> old = rule_->histories(), carried = rule->histories();
    for (std::size_t i = 0; i < old.size(); ++i) std::swap(*old[i], *carried[i]);
  }
  rule_ = std::move(rule);
  rule_spec_ = update;
  if (rule_->needs_whole_gradient()) {
    SPEEDO_INFO("clip_gradients needs the norm of the whole gradient: contributions cannot go out "
                "while gradients are still being computed");
  }
  return {};
}

Result<std::unique_ptr<WorkerUpdate>> TrainerEngine::make_update(const UpdateSpec& update) {
  const WorkerUpdate::Parts parts{.learner = *learner_,
                                  .rule = rule_.get(),
                                  .host = *host_,
                                  .exchange = *exchange_,
                                  .shares_memory = shares_memory_,
                                  .term = incarnation_.term};
  std::vector<FactorShape> factors;
  if (solver_.iter_size() <= 1) {
    factors = choose_factors(update, learner_->factor_shapes(), incarnation_.job.expected_workers);
  }
  learner_->leave_factors(factors);
  if (!update.replicated) return make_worker_update(update, parts);
  SPEEDO_ASSIGN(auto rule, UpdateRule::create(solver_of(solver_, update), learner_->layout(),
                                              learner_->backend()));
  return make_replica_update(parts, {.rule = std::move(rule),
                                     .factors = factors,
                                     .parts = incarnation_.job.step_parts,
                                     .step_key = step_key(incarnation_.term)});
}

Result<void> TrainerEngine::enter_stage(std::uint32_t stage) {
  const UpdateSpec& update = incarnation_.job.stages[stage];
  update_.reset();
  stage_.reset();
  quiet_.reset();  // the layers may leave other gradients
  const bool has_rule = rule_ && rule_spec_.base_lr == update.base_lr &&
                        rule_spec_.momentum == update.momentum &&
                        rule_spec_.weight_decay == update.weight_decay;
  const bool is_used = update.kind != UpdateKind::kGradientOnly;
  const bool is_in_states = incarnation_.job.snapshot_workers &&
                            may_hold_histories(incarnation_.job.stages, stage);
  if (is_used ? !has_rule : is_in_states && !rule_) SPEEDO_TRY(make_rule(update));
  SPEEDO_ASSIGN(update_, make_update(update));
  codec_.enter_stage(update, update_->contribution_count(),
                     may_hold_residual(incarnation_.job.stages, stage));
  if (incarnation_.memory) {
    incarnation_.memory->share(
        {.slots = 1, .element_count = update_->contribution_count(), .model = model_},
        update_->home());
  }
  stage_ = stage;
  return before_run_.follow(learner_->backend(), arrays_before_run());
}

Result<RunReport> TrainerEngine::run(const TrainMessage& order,
                                     std::function<bool()> cancelled) {
  SPEEDO_TRY(check_order(order, incarnation_.job));
  exchange_->allow_cancel(std::move(cancelled));
  if (ended_at_ && is_tracing()) trace_span("wait for order", *ended_at_, steady_clock().now());
  if (order.seat != kNoSeat) SPEEDO_TRY(take_seat(order));
  exchange_->abandon();  // what a run that failed has left
  has_missed_weights_ = false;
  codec_.begin_run(order.merged_run);
  note_place(order);
  if (stage_ != order.stage) SPEEDO_TRY(enter_stage(order.stage));
  note_version(order);
  // What earlier incarnations have contributed from the same memory may still be merged until now.
  for (const auto& memory : std::exchange(earlier_memories_, {})) memory->withdraw();
  if (incarnation_.memory) incarnation_.memory->begin_run(order.run);
  RunClock clock(platform_.clock(), *learner_, *exchange_);
  const Traffic traffic = exchange_->traffic();
  SPEEDO_ASSIGN(std::uint64_t base, begin_update(order));
  clock.steps_begin();
  begin_steps(order);
  before_run_.keep(order.run, {.updates_held = updates_held_, .steps_done = steps_done_});
  auto computed = compute(order, base);
  // Weights that were overwritten while they came, or were computed with: from the newer ones, with
  // the same data.
  while (have_gone(computed)) {
    SPEEDO_ASSIGN(base, begin_update(order));
    begin_steps(order);
    computed = compute(order, base);
  }
  SPEEDO_ASSIGN(float loss, std::move(computed));
  damaged_since_.reset();
  clock.steps_end();
  steps_done_ += order.shards * spec().steps_per_run;
  SPEEDO_TRY(contribute(order, base, loss));
  return RunReport{.run = RunId{order.run},
                   .loss = loss,
                   .base = Version{base},
                   .samples = learner_->batch_size() * batch_span(order).count,
                   .phases = with_wait(clock),
                   .traffic = exchange_->traffic() - traffic,
                   .check = update_->weights_check(),
                   .fault = std::isfinite(loss) ? std::string() : fault_,
                   .read_faults = learner_->take_read_faults()};
}

// Nothing that was made of weights which are gone counts, errors neither.
bool TrainerEngine::have_gone(const Result<float>& computed) {
  const bool were_gone = std::exchange(weights_are_gone_, false);
  if (!update_->has_lost_weights()) return !computed && were_gone;
  exchange_->abandon();
  if (rule_in_use() && base_) {
    forget_histories("a step was computed with weights that were overwritten meanwhile");
  }
  return true;
}

void TrainerEngine::withdraw() { exchange_->withdraw(update_ ? update_->contribution_count() : 0); }

void TrainerEngine::note_version(const TrainMessage& order) {
  const bool follows = base_ && *base_ + 1 == order.version;
  rounds_ = follows ? std::min(rounds_ + 1, kRoundsToExpect) : 0;
  base_.reset();
  update_->set_follows(rounds_ == kRoundsToExpect);
}

void TrainerEngine::begin_contribution(const TrainMessage& order, std::uint64_t base) {
  update_->begin_contribution(order, base);
  base_ = base;
  const bool is_large = update_->contribution_count() * sizeof(float) >= ahead_bytes_min_;
  if (rounds_ == kRoundsToExpect && is_large) update_->expect(base + 1);
}

Instant TrainerEngine::wait_ahead() {
  const std::optional<Instant> pause = exchange_->advance();
  if (!pause) return kNothingExpected;
  if (!update_ || !update_->work_ahead()) return *pause;
  progress_.fetch_add(1, std::memory_order_relaxed);
  return Instant{0};
}

// Makes the run's contribution visible, unless it is not finite: then the loss says so.
Result<void> TrainerEngine::contribute(const TrainMessage& order, std::uint64_t& base,
                                       float& loss) {
  contributed_.reset();
  if (std::isfinite(loss)) {
    const TraceSpan span("store contribution");
    const auto committed = update_->commit(order);
    host_->end_ahead();
    if (!committed && committed.error().code != ErrorCode::kNotFinite) return committed.error();
    if (committed) {
      base = *committed;
      contributed_ = order.run;
    } else {
      loss = std::numeric_limits<float>::quiet_NaN();
      fault_ = "the contribution: " + committed.error().message;
    }
  }
  diverged_ = !std::isfinite(loss);
  if (!diverged_) return {};
  SPEEDO_WARN("run {}: nothing is contributed, the loss is {}{}", order.run, loss,
              fault_.empty() ? "" : ", first not finite is " + fault_);
  update_->diverged();
  exchange_->abandon();
  return {};
}

// Whoever works for the first time has waited for nobody.
PhaseTimes TrainerEngine::with_wait(const RunClock& clock) {
  PhaseTimes phases = clock.phases();
  if (ended_at_) phases.wait_us = whole_microseconds(clock.start() - *ended_at_);
  ended_at_ = platform_.clock().now();
  return phases;
}

// What it reads at once may be overwritten by newer weights meanwhile, too: those are read then.
Result<std::uint64_t> TrainerEngine::begin_update(const TrainMessage& order) {
  const TraceSpan span("read weights");
  host_->end_ahead();
  while (true) {
    auto base = update_->begin(order);
    if (base || !come_again(base.error()) || exchange_->is_cancelled()) return base;
  }
}

// Whether weights that cannot be read for this reason will be there again. What the store has lost
// and what others wrote in their place the master replaces once it has looked, within seconds; a
// run that misses them for the first time may find newer ones at once.
bool TrainerEngine::come_again(const Error& error) {
  const bool is_damaged = error.code == ErrorCode::kCorrupt;
  if (!is_damaged && error.code != ErrorCode::kNotFound) return false;
  const Instant now = platform_.clock().now();
  if (is_damaged && !damaged_since_) damaged_since_ = now;
  if (is_damaged && now - *damaged_since_ > kStoreCommandTimeout) return false;
  if (is_damaged || has_missed_weights_) platform_.sleep(kLostWeightsPoll);
  has_missed_weights_ = true;
  return true;
}

// A gradient that overflows goes into the momentum as well, and whatever this worker made of it
// from then on would be refused. Only a run that came to nothing gives cause to look.
void TrainerEngine::mend_histories(const TrainMessage& order) {
  const bool was_merged = !contributed_ || order.merged_run == *contributed_;
  if (!rule_ || (was_merged && !diverged_)) return;
  for (const Arena* history : rule_->histories()) {
    if (learner_->backend().all_finite(history->size(), history->data())) continue;
    return forget_histories("it is not finite after a run that came to nothing");
  }
}

void TrainerEngine::forget_histories(const char* why) {
  SPEEDO_WARN("the solver's history begins anew: {}", why);
  clear_histories();
}

void TrainerEngine::clear_histories() {
  for (Arena* history : rule_->histories()) {
    learner_->backend().fill(history->size(), 0.0F, history->data());
  }
  updates_held_ = 0;
}

void TrainerEngine::begin_steps(const TrainMessage& order) {
  learner_->set_batch_span(batch_span(order));
  if (!rule_) return;
  mend_histories(order);
  rule_->scale_rate(std::bit_cast<float>(order.lr_scale_bits));
  if (spec().updater == UpdaterState::kReset) clear_histories();
  // What is averaged began with the job, and an iteration is a round of such runs.
  if (averages_histories(spec())) {
    updates_held_ = static_cast<std::int64_t>(order.iteration * spec().steps_per_run);
  }
}

// Of the first step's first pass.
std::function<Result<void>(const Bucket&)> TrainerEngine::need_weights(std::uint32_t step) {
  if (step != 0) return nullptr;
  return [this](const Bucket& bucket) {
    auto here = update_->need_weights(bucket);
    weights_are_gone_ = !here && come_again(here.error());
    return here;
  };
}

std::uint64_t TrainerEngine::batches_per_step() const {
  return static_cast<std::uint64_t>(std::max(solver_.iter_size(), 1));
}

// An order for the same place again is of a run that the store has lost: on the same data.
void TrainerEngine::note_place(const TrainMessage& order) {
  const bool is_again = last_order_ && last_order_->first_step == order.first_step;
  if (is_again) steps_done_ = last_order_->steps_done;
  last_order_ = {order.first_step, steps_done_};
}

// A worker with a shard of its own counts its own steps; otherwise the master deals out the stream.
BatchSpan TrainerEngine::batch_span(const TrainMessage& order) const {
  const std::uint64_t batches = batches_per_step();
  const std::uint64_t steps = order.shards * spec().steps_per_run;
  const bool own = incarnation_.job.offset_shards;
  const std::uint64_t first = own ? steps_done_ : order.first_step;
  const std::uint64_t next = own ? steps_done_ + steps : order.next_step;
  return {.first = first * batches, .count = steps * batches, .next = next * batches};
}

Result<float> TrainerEngine::compute(const TrainMessage& order, std::uint64_t base) {
  fault_.clear();
  double loss_sum = 0.0;
  SPEEDO_TRY(make_quiet_steps(order));
  for (std::uint32_t step = 0; step < spec().steps_per_run;) {
    if (exchange_->is_cancelled()) {
      settle_steps(order, step, loss_sum);
      return Error{ErrorCode::kUnavailable, "run cancelled"};
    }
    if (is_quiet(step)) {
      auto queued = queue_step(order, step);
      if (queued && !quiet_->is_due()) {
        ++step;
        continue;
      }
      const std::uint32_t next = queued ? step + 1 : step;
      step = settle_steps(order, next, loss_sum);
      if (step == next) SPEEDO_TRY(std::move(queued));
      continue;
    }
    const std::uint32_t now = step;
    step = settle_steps(order, now, loss_sum);
    if (step != now) continue;
    const bool is_last = step + 1 == spec().steps_per_run;
    SPEEDO_ASSIGN(const float loss,
                  is_last ? compute_last_step(order, base) : compute_step(order, step));
    loss_sum += loss;
    ++step;
    if (std::isfinite(loss)) continue;
    if (is_finite_) {
      SPEEDO_ASSIGN(fault_, learner_->find_non_finite_values());
    }
    break;
  }
  return static_cast<float>(loss_sum / spec().steps_per_run);
}

int TrainerEngine::passes_of(const TrainMessage& order) const {
  return std::max(solver_.iter_size(), 1) * static_cast<int>(order.shards);
}

}  // namespace speedo
