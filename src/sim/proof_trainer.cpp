#include "sim/proof_trainer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/train/job_end.hpp>

#include "store/chunked_store.hpp"

namespace speedo::sim {
namespace {

constexpr Instant kPoll = std::chrono::milliseconds(100);
constexpr std::uint64_t kProgressPerSecond = 10;

bool averages(const UpdateSpec& spec) { return spec.updater == UpdaterState::kAverage; }

}  // namespace

ProofTrainer::ProofTrainer(Setting setting)
    : setting_(std::move(setting)),
      random_(setting_.seed),
      momentum_(setting_.problem.size(), 0.0F) {}

void ProofTrainer::attach(WorkerNode& node) {
  node_ = &node;
  client_ = std::make_unique<StoreClient>(setting_.server, node.process(), random_.next());
  std::shared_ptr<KeyValue> map(std::shared_ptr<void>(), client_.get());
  store_ = std::make_shared<ChunkedStore>(std::move(map), setting_.scenario.config.job);
}

// Between half and one and a half of it.
Instant ProofTrainer::draw(Instant mean) {
  return Instant{static_cast<Instant::rep>(static_cast<float>(mean.count()) *
                                           random_.uniform(0.5F, 1.5F))};
}

void ProofTrainer::after(Instant delay, Step step) {
  node_->process().after(delay, std::move(step));
}

void ProofTrainer::enqueue(Step step) {
  steps_.push_back(std::move(step));
  if (!busy_) next();
}

void ProofTrainer::next() {
  busy_ = !steps_.empty();
  if (!busy_) return;
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  after(Instant{0}, step);
}

// The store's client tries for a while before it gives up.
void ProofTrainer::when_reachable(int attempt, Step go, std::function<void(Error)> fail) {
  if (client_->reachable()) return go();
  if (attempt >= kStoreAttemptsMax) {
    return fail({ErrorCode::kUnavailable, "the store does not answer"});
  }
  const Instant wait = std::min<Instant>(kStoreBackoffFirst * (1 << attempt), kStoreBackoffMax);
  after(wait, [=, this, go = std::move(go), fail = std::move(fail)] {
    when_reachable(attempt + 1, go, fail);
  });
}

void ProofTrainer::prepare(const WelcomeMessage& welcome,
                           std::function<void(Result<Digest>)> done) {
  enqueue([this, welcome, done = std::move(done)] {
    life_ = Life{WorkerId{welcome.worker}, welcome.epoch, 0, {}, {}, {}};
    after(draw(setting_.scenario.exchange_time), [this, done] {
      look_for_job(node_->process().now() + 2 * kJobWatchInterval, done);
    });
  });
}

// A job that is not there may come back with its master.
void ProofTrainer::look_for_job(Instant deadline, std::function<void(Result<Digest>)> done) {
  const auto answer = [this, done](Result<Digest> result) {
    done(std::move(result));
    next();
  };
  when_reachable(
      0,
      [=, this] {
        const auto job = store_->get_blob(job_key());
        if (job) return answer(setting_.problem.layout().digest());
        if (job.error().code != ErrorCode::kNotFound) return answer(job.error());
        if (node_->process().now() > deadline) {
          return answer(Error{ErrorCode::kUnavailable, "the job is not in the store"});
        }
        after(kPoll, [=, this] { look_for_job(deadline, done); });
      },
      answer);
}

void ProofTrainer::run(const TrainMessage& order, WorkerId, RunDone done) {
  auto run = std::make_shared<Run>();
  run->order = order;
  run->done = std::move(done);
  current_ = run;
  enqueue([this, run] { begin_run(run); });
}

void ProofTrainer::look_for_end(std::uint64_t epoch, std::function<void(bool)> done) {
  after(draw(setting_.scenario.exchange_time), [this, epoch, done = std::move(done)] {
    const auto is_over = client_->reachable() ? is_job_over(*store_, epoch) : Result<bool>(false);
    if (node_->process().alive()) done(is_over && *is_over);
  });
}

void ProofTrainer::cancel() {
  if (current_) current_->cancelled = true;
  current_ = nullptr;
}

void ProofTrainer::stall_until(Instant end, const FaultMark& mark) {
  stalled_until_ = end;
  stall_ = mark;
}

bool ProofTrainer::is_stalled() const {
  const bool stalled = node_->process().now() < stalled_until_;
  if (stalled) stall_.felt();
  return stalled;
}

void ProofTrainer::spoil_next(bool only_contribution, const FaultMark& mark) {
  spoilt_ = only_contribution ? Spoilt::kContribution : Spoilt::kLoss;
  spoiler_ = mark;
}

// Whether this run is the one; from then on none is.
bool ProofTrainer::spoils(Spoilt what, std::uint64_t run) {
  if (spoilt_ != what) return false;
  spoilt_ = Spoilt::kNothing;
  if (setting_.on_spoilt) setting_.on_spoilt(run, spoiler_);
  return true;
}

std::uint64_t ProofTrainer::progress() const {
  const Instant now = node_->process().now();
  const Instant end = now < stalled_until_ ? Instant{0} : now;
  return static_cast<std::uint64_t>(end / std::chrono::milliseconds(1000 / kProgressPerSecond));
}

void ProofTrainer::end(const RunPtr& run, Result<RunReport> result) {
  run->writer = nullptr;
  if (current_ == run) current_ = nullptr;
  run->done(std::move(result));
  next();
}

const UpdateSpec& ProofTrainer::spec(const Run& run) const {
  return setting_.scenario.config.stages[run.order.stage].update;
}

void ProofTrainer::begin_run(const RunPtr& run) {
  SPEEDO_ASSERT(run->order.stage < setting_.scenario.config.stages.size());
  if (life_.stage != run->order.stage) life_.own.clear();
  life_.stage = run->order.stage;
  const std::size_t count = setting_.problem.size();
  run->record.resize(averages(spec(*run)) ? 2 * count : count);
  const auto go = [this, run](std::uint64_t version) {
    run->base = version;
    run->x.assign(run->record.begin(), run->record.begin() +
                                           static_cast<std::ptrdiff_t>(setting_.problem.size()));
    compute(run);
  };
  const bool has_own = is_elastic(spec(*run).kind) && !life_.own.empty();
  if (has_own && take_elastic_step(run)) {
    run->base = run->order.version;
    run->x = life_.own;
    return compute(run);
  }
  after(draw(setting_.scenario.exchange_time), [this, run, go] {
    read_weights(run, node_->process().now() + kStoreCommandTimeout, run->order.version, go);
  });
}

// The worker's half of the last elastic step, if that was merged. False: its weights are not known.
bool ProofTrainer::take_elastic_step(const RunPtr& run) {
  const std::optional<std::uint64_t> contributed = std::exchange(life_.contributed, std::nullopt);
  if (!contributed || run->order.merged_run != *contributed) return true;
  if (spec(*run).kind == UpdateKind::kElastic) {
    const float weight = std::bit_cast<float>(run->order.merged_weight_bits);
    for (std::size_t i = 0; i < life_.own.size(); ++i) life_.own[i] -= weight * life_.elastic[i];
    return true;
  }
  const auto info = get(*store_, local_key(life_.epoch, life_.worker.value),
                        setting_.problem.layout().digest(), life_.own);
  if (info && info->version == *contributed) return true;
  life_.own.clear();
  return false;
}

void ProofTrainer::read_weights(const RunPtr& run, Instant deadline, std::uint64_t version,
                                std::function<void(std::uint64_t version)> go) {
  const auto fail = [this, run](Error error) { end(run, std::move(error)); };
  if (run->cancelled) return fail({ErrorCode::kUnavailable, "cancelled"});
  when_reachable(
      0,
      [=, this] {
        const auto info =
            get(*store_, weights_key(), setting_.problem.layout().digest(), run->record);
        if (info && info->version >= version) return go(info->version);
        // Of another stage's size, or lost: the master is about to publish.
        const bool hopeless = !info && info.error().code != ErrorCode::kNotFound &&
                              info.error().code != ErrorCode::kMismatch;
        if (hopeless) return fail(info.error());
        if (node_->process().now() > deadline) {
          return fail({ErrorCode::kUnavailable, "the weights did not appear"});
        }
        after(kPoll, [=, this] { read_weights(run, deadline, version, go); });
      },
      fail);
}

void ProofTrainer::compute(const RunPtr& run) {
  const Instant now = node_->process().now();
  if (run->cancelled) return end(run, Error{ErrorCode::kUnavailable, "cancelled"});
  if (is_stalled()) return after(stalled_until_ - now, [this, run] { compute(run); });
  const Scenario& scenario = setting_.scenario;
  const auto shares = static_cast<double>(run->order.data_runs);
  const Instant mean{static_cast<Instant::rep>(
      static_cast<double>(scenario.run_time.count()) * setting_.slowness * shares)};
  const UpdateSpec& update = spec(*run);
  if (averages(update)) {
    momentum_.assign(run->record.begin() + static_cast<std::ptrdiff_t>(setting_.problem.size()),
                     run->record.end());
  }
  if (update.updater == UpdaterState::kReset) std::ranges::fill(momentum_, 0.0F);
  for (std::uint32_t step = 0; step < update.steps_per_run; ++step) compute_step(*run, step);
  after(draw(mean), [this, run] { contribute(run); });
}

void ProofTrainer::compute_step(Run& run, std::uint32_t step) {
  const Scenario& scenario = setting_.scenario;
  const UpdateSpec& update = spec(run);
  run.gradient.assign(run.x.size(), 0.0F);
  const std::uint64_t shares = run.order.data_runs;
  for (std::uint64_t i = 0; i < shares; ++i) {
    run.loss = setting_.problem.add_gradient(run.x, run.order.data_run + i, step, run.gradient);
  }
  for (float& each : run.gradient) each /= static_cast<float>(shares);
  if (update.kind == UpdateKind::kGradientOnly) return;
  const float rate = update.base_lr.value_or(scenario.learning_rate) *
                     std::bit_cast<float>(run.order.lr_scale_bits);
  const float momentum = update.momentum.value_or(scenario.momentum);
  for (std::size_t i = 0; i < run.x.size(); ++i) {
    momentum_[i] = momentum * momentum_[i] + rate * run.gradient[i];
    run.x[i] -= momentum_[i];
  }
}

// Forms what goes to the master. An elastic worker compares with the newest centre.
void ProofTrainer::contribute(const RunPtr& run) {
  if (is_stalled()) {
    return after(stalled_until_ - node_->process().now(), [this, run] { contribute(run); });
  }
  const UpdateSpec& update = spec(*run);
  if (spoils(Spoilt::kLoss, run->order.run)) run->loss = std::numeric_limits<float>::quiet_NaN();
  if (!std::isfinite(run->loss)) {
    life_.own.clear();
    return end(run, RunReport{RunId{run->order.run}, run->loss, Version{run->base}, 1, 0, 0});
  }
  if (update.kind == UpdateKind::kElastic) {
    return read_weights(run, node_->process().now() + kStoreCommandTimeout, run->order.version,
                        [this, run, rate = update.moving_rate](std::uint64_t version) {
                          run->base = version;
                          run->result.resize(run->x.size());
                          for (std::size_t i = 0; i < run->x.size(); ++i) {
                            run->result[i] = rate * (run->x[i] - run->record[i]);
                          }
                          put(run);
                        });
  }
  if (update.kind == UpdateKind::kElasticMaster) {
    run->result = run->x;
  } else if (update.kind == UpdateKind::kGradientOnly) {
    run->result = run->gradient;
  } else {
    std::vector<float> end = run->x;
    if (averages(update)) end.insert(end.end(), momentum_.begin(), momentum_.end());
    run->result.resize(end.size());
    for (std::size_t i = 0; i < end.size(); ++i) run->result[i] = end[i] - run->record[i];
  }
  put(run);
}

// Chunks now, the manifest a moment later: whatever happens in between, nothing half is seen.
void ProofTrainer::put(const RunPtr& run) {
  const auto fail = [this, run](Error error) { end(run, std::move(error)); };
  if (run->cancelled) return fail({ErrorCode::kUnavailable, "cancelled"});
  if (spoils(Spoilt::kContribution, run->order.run)) {
    run->result[0] = std::numeric_limits<float>::infinity();
  }
  when_reachable(
      0,
      [=, this] {
        if (setting_.on_contribution) {
          setting_.on_contribution({life_.epoch, life_.worker.value, run->order.run, run->base,
                                    run->order.stage, run->result});
        }
        RecordInfo info;
        info.model = setting_.problem.layout().digest();
        info.version = run->order.run;
        info.base_version = run->base;
        info.worker = life_.worker.value;
        info.element_count = run->result.size();
        run->writer = store_->write(contribution_key(life_.epoch, life_.worker.value), info);
        for (std::size_t chunk = 0; chunk < chunk_count(info.element_count); ++chunk) {
          const std::size_t offset = chunk * kChunkElements;
          const std::size_t left = run->result.size() - offset;
          run->writer->write(chunk, std::span<const float>(run->result)
                                        .subspan(offset, std::min(kChunkElements, left)));
        }
        after(draw(setting_.scenario.exchange_time), [=, this] {
          const auto written = run->writer->finish();
          if (!written) return fail(written.error());
          if (is_elastic(spec(*run).kind)) {
            life_.own = run->x;
            life_.elastic = run->result;
            life_.contributed = run->order.run;
          }
          const Instant compute = setting_.scenario.run_time;
          const auto us = static_cast<std::uint64_t>(
              compute.count() / 1000 * static_cast<Instant::rep>(run->order.data_runs));
          const auto slow_us =
              static_cast<std::uint64_t>(static_cast<double>(us) * setting_.slowness);
          end(run, RunReport{RunId{run->order.run}, run->loss, Version{run->base},
                             run->order.data_runs, slow_us, 1000});
        });
      },
      fail);
}

}  // namespace speedo::sim
