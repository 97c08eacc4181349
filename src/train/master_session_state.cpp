// What a new master needs to go on, as record.Session of proto/speedo.proto.

#include <cmath>

#include <speedo/base/assert.hpp>

#include "speedo.pb.h"
#include "train/master_session_impl.hpp"

namespace speedo {

namespace {

// No counter of a real job comes near it; damaged bytes do.
constexpr std::uint64_t kCounterMax = std::uint64_t{1} << 62U;

bool counts_are_sound(const record::Session& state) {
  for (const std::uint64_t counter :
       {state.iteration(), state.stage(), state.data_fresh(), state.next_worker(), state.next_run(),
        state.merges(), state.contributions(), state.rejected(), state.discarded(), state.samples(),
        state.workers_joined()}) {
    if (counter > kCounterMax) return false;
  }
  std::uint64_t above = 0;  // of the smallest value that may follow
  for (const std::uint64_t ordinal : state.data_open()) {
    if (ordinal < above || ordinal >= state.data_fresh()) return false;
    above = ordinal + 1;
  }
  return state.has_stage_count() && state.stage_start() <= state.iteration() &&
         std::isfinite(state.staleness_sum()) && state.staleness_sum() >= 0.0;
}

// The epoch is written last: bytes that were cut off lack it, and so do states of SpeeDO versions
// whose trainings had no names.
bool is_nameless(const record::Session& state) {
  return counts_are_sound(state) && !state.has_training_high() && !state.has_epoch();
}

Result<record::Session> decode(std::string_view bytes) {
  record::Session state;
  const bool parsed = state.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (parsed && counts_are_sound(state) && state.has_epoch()) return state;
  if (parsed && is_nameless(state)) {
    return Error{ErrorCode::kCorrupt,
                 "the saved state of the training session was written by an earlier version of "
                 "SpeeDO, or is cut off; its weights can be gone on from: give the .solverstate "
                 "of the last snapshot with --snapshot"};
  }
  return Error{ErrorCode::kCorrupt,
               "the saved state of the training session is damaged; resume from another "
               "checkpoint"};
}

TrainingId training_of(const record::Session& state) {
  return {state.training_high(), state.training_low()};
}

}  // namespace

Result<MasterSession::Origin> MasterSession::origin_of(std::string_view bytes) {
  SPEEDO_ASSIGN(const record::Session state, decode(bytes));
  return Origin{training_of(state), state.epoch(), state.iteration()};
}

std::string MasterSession::Impl::encode_state(const MergeOrder* merged) const {
  std::vector<DataRange> used;
  std::uint64_t contributions = 0, samples = 0;
  double staleness_sum = 0.0;
  if (merged != nullptr) {
    for (const Report& report : merged->reports) {
      used.push_back(report.data);
      samples += report.samples;
      staleness_sum += static_cast<double>(staleness(report));
    }
    contributions = merged->reports.size();
  }
  const std::uint64_t merges = merged != nullptr ? 1 : 0;
  record::Session state;
  state.set_iteration(iteration() + merges);
  state.set_stage(stage_);
  state.set_stage_start(progress_.stage_start);
  state.set_strategy(strategy_->save());
  state.set_data_fresh(leases_.fresh());
  for (const std::uint64_t ordinal : leases_.open(used)) state.add_data_open(ordinal);
  state.set_next_worker(progress_.worker_ids);
  state.set_next_run(next_run_);
  state.set_merges(progress_.merges + merges);
  state.set_contributions(progress_.contributions + contributions);
  state.set_rejected(progress_.rejected);
  state.set_discarded(progress_.discarded);
  state.set_samples(progress_.samples + samples);
  state.set_staleness_sum(progress_.staleness_sum + staleness_sum);
  state.set_workers_joined(progress_.workers_joined);
  state.set_stage_count(config_.stages.size());
  state.set_training_high(config_.training.high);
  state.set_training_low(config_.training.low);
  state.set_epoch(config_.epoch);
  return state.SerializeAsString();
}

// A state whose stage has had its iterations goes on with the next one: nothing is left to drain.
Result<void> MasterSession::Impl::restore(std::string_view bytes) {
  SPEEDO_ASSERT(phase_ == Phase::kGathering);
  SPEEDO_ASSERT(workers_.empty());
  SPEEDO_ASSIGN(const record::Session state, decode(bytes));
  if (state.stage_count() != config_.stages.size()) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("the saved state is of a job with {} stages, this one has {}; resume "
                             "with the --hybrid of that job",
                             state.stage_count(), config_.stages.size())};
  }
  const Schedule& stage = config_.stages[state.stage() % config_.stages.size()];
  const bool over =
      stage.iterations != 0 && state.iteration() - state.stage_start() >= stage.iterations;
  const std::uint64_t number = over ? state.stage() + 1 : state.stage();
  auto strategy = make_(config_.stages[number % config_.stages.size()].strategy).value();
  if (!over) SPEEDO_TRY(strategy->restore(state.strategy()));

  strategy_ = std::move(strategy);
  config_.training = training_of(state);
  progress_.iteration = first_iteration_ = state.iteration();
  set_stage(number, over ? state.iteration() : state.stage_start());
  leases_ = DataLeases(state.data_fresh(), {state.data_open().begin(), state.data_open().end()});
  progress_.worker_ids = state.next_worker();
  next_run_ = std::max(next_run_, state.next_run());
  progress_.merges = state.merges();
  progress_.contributions = state.contributions();
  progress_.rejected = state.rejected();
  progress_.discarded = state.discarded();
  progress_.samples = state.samples();
  progress_.staleness_sum = state.staleness_sum();
  progress_.workers_joined = state.workers_joined();
  return {};
}

}  // namespace speedo
