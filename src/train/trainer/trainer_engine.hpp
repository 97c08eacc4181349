#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/core/update_rule.hpp>
#include <speedo/train/trainer.hpp>

#include "caffe.pb.h"
#include "store/shared/memory_exchange.hpp"
#include "train/states/state_before_run.hpp"
#include "train/states/worker_state.hpp"
#include "train/trainer/buckets_ahead.hpp"
#include "train/trainer/learner.hpp"
#include "train/trainer/run_clock.hpp"
#include "train/trainer/trainer_exchange.hpp"
#include "train/trainer/trainer_host_view.hpp"
#include "train/trainer/trainer_update.hpp"

namespace speedo {

DataStart start_of(const Trainer::Incarnation& incarnation);

// What a trainer's thread owns: net, update rule, and the way of one run through them.
// Thread safety: made, used and destroyed on one thread; `progress` is counted for others.
class TrainerEngine {
 public:
  using Incarnation = Trainer::Incarnation;
  static Result<std::unique_ptr<TrainerEngine>> create(const TrainerParts& parts,
                                                       Incarnation incarnation,
                                                       std::atomic<std::uint64_t>& progress);

  // Begins another incarnation with the net of this one. False: its job needs another net.
  bool begin_incarnation(const Incarnation& incarnation);

  Digest model() const { return model_; }
  // While no run is under way: goes on with what the next one needs; how soon it is worth while
  // again.
  Instant wait_ahead();
  // How soon, where there is nothing to go on with.
  static constexpr Instant kNothingExpected = std::chrono::hours(1);

  // This incarnation as it has to be made anew to begin its data where the state at a seat says:
  // with --shard offset, and if it does not yet. Errors: those of the store.
  Result<std::optional<Incarnation>> moved_to(std::uint64_t seat) const;
  // `cancelled` is asked between steps and between chunks.
  Result<RunReport> run(const TrainMessage& order, std::function<bool()> cancelled);

  // Erases what the run before this has put. Not during a run.
  void withdraw();

  // See Trainer::save_state(). Not during a run.
  Result<void> save_state(const SaveStateMessage& order);

  // Says in the log what the codec has left out and nobody will send any more.
  ~TrainerEngine();

 private:
  // Where a worker with a shard of its own was in it when an order came.
  struct OwnPlace {
    std::uint64_t first_step, steps_done;
  };

  TrainerEngine(Platform& platform, std::atomic<std::uint64_t>& progress)
      : platform_(platform), progress_(progress) {}

  Result<void> build(const TrainerParts& parts);
  void connect();
  Result<void> enter_stage(std::uint32_t stage);
  Result<void> make_rule(const UpdateSpec& update);
  Result<std::uint64_t> begin_update(const TrainMessage& order);
  void begin_steps(const TrainMessage& order);
  void mend_histories(const TrainMessage& order);
  void note_place(const TrainMessage& order);
  BatchSpan batch_span(const TrainMessage& order) const;
  void note_version(const TrainMessage& order);
  void begin_contribution(const TrainMessage& order, std::uint64_t base);
  Result<float> compute(const TrainMessage& order, std::uint64_t base);
  // trainer_engine_steps.cpp: the others.
  Result<float> compute_step(const TrainMessage& order, std::uint32_t step);
  Result<float> compute_last_step(const TrainMessage& order, std::uint64_t base);
  bool goes_ahead();
  void step_ahead(const Bucket& bucket, const TrainMessage& order, std::uint32_t step);
  void pass_on(bool waits);
  void note_not_finite(const Bucket& bucket);
  std::function<Result<void>(const Bucket&)> need_weights(std::uint32_t step);
  bool have_gone(const Result<float>& computed);
  bool rule_in_use() const { return spec().kind != UpdateKind::kGradientOnly; }
  // trainer_engine_quiet.cpp: steps between the first and the last that wait for no loss.
  Result<void> make_quiet_steps(const TrainMessage& order);
  bool is_quiet(std::uint32_t step) const;
  Result<void> queue_step(const TrainMessage& order, std::uint32_t step);
  std::uint32_t settle_steps(const TrainMessage& order, std::uint32_t step, double& loss_sum);
  int passes_of(const TrainMessage& order) const;
  void step_on(const Bucket& bucket, const TrainMessage& order, std::uint32_t step);
  void update(const Bucket& bucket, const TrainMessage& order, std::uint32_t step);
  void apply_rule(const Bucket& bucket, const TrainMessage& order, std::uint32_t step);
  Result<std::unique_ptr<WorkerUpdate>> make_update(const UpdateSpec& update);
  Result<void> contribute(const TrainMessage& order, std::uint64_t& base, float& loss);
  record::WorkerState state_head() const;  // without what only the snapshot knows
  std::vector<const Arena*> arrays_before_run();
  void download_own(StateOfWorker& state, bool is_before);
  Result<StateOfWorker> read_seat(std::uint64_t seat) const;
  Result<void> take_seat(const TrainMessage& order);
  bool fits(const record::WorkerState& head) const;
  void load(StateOfWorker& state);
  void forget_histories(const char* why);
  void clear_histories();
  PhaseTimes with_wait(const RunClock& clock);
  bool come_again(const Error& error);
  std::uint64_t batches_per_step() const;
  const UpdateSpec& spec() const { return incarnation_.job.stages[*stage_]; }

  Platform& platform_;
  std::atomic<std::uint64_t>& progress_;
  Incarnation incarnation_;
  caffe::SolverParameter solver_;
  std::unique_ptr<Learner> learner_;  // what follows uses its backend
  Digest model_;
  std::unique_ptr<HostView> host_;
  std::unique_ptr<BucketsAhead> ahead_;  // where the device is not the host and it was wanted
  bool may_go_ahead_ = true;             // until memory for that was refused
  TrainerCodec codec_;
  std::unique_ptr<RecordExchange> exchange_;
  std::unique_ptr<UpdateRule> rule_;  // null until a stage uses one, or its states have it
  UpdateSpec rule_spec_;              // what it was made for
  std::unique_ptr<QuietSteps> quiet_;  // of the rule; null: every step waits for its loss
  bool may_be_quiet_ = true;           // until the rule turns out to have none
  bool is_run_quiet_ = false;          // the run's steps are those of quiet_
  std::uint32_t loud_step_ = 0;        // of the run: the one whose loss was not finite
  std::int64_t updates_held_ = 0;     // by its histories: this worker's own, unless averaged
  bool shares_memory_ = false;
  std::uint64_t ahead_bytes_min_ = 0;
  std::vector<std::shared_ptr<WorkerMemory>> earlier_memories_;  // of incarnations before this one
  std::optional<std::uint32_t> stage_;
  std::unique_ptr<WorkerUpdate> update_;  // of the stage
  std::optional<std::uint64_t> base_;  // of the run before this one
  int rounds_ = 0;                   // orders in a row for the version after the base before
  std::optional<Instant> ended_at_;  // the run before this one, of this incarnation
  std::uint64_t steps_done_ = 0;
  StateBeforeRun before_run_;
  std::optional<OwnPlace> last_order_;
  std::optional<std::uint64_t> contributed_;  // the run before this one, if it did
  bool diverged_ = false;                     // it came to nothing finite
  bool weights_are_gone_ = false;             // while they were read
  std::optional<Instant> damaged_since_;      // the weights in the store, as this run sees them
  bool has_missed_weights_ = false;           // this run, at least once
  bool is_finite_ = true;                     // every bucket of the step under way so far
  std::string fault_;                         // what was not finite first, if something was
};

}  // namespace speedo
