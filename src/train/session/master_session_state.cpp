// What a new master needs to go on, as record.Session of proto/speedo.proto.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <speedo/base/assert.hpp>

#include "speedo.pb.h"
#include "train/session/master_session_impl.hpp"

namespace speedo {

namespace {

// No counter of a real job comes near it; damaged bytes do.
constexpr std::uint64_t kCounterMax = std::uint64_t{1} << 62U;

// Shards and pieces of the data before the place, each behind the one before. Pieces are too short
// for a shard: others would be cut into as many as a damaged count says.
bool remains_are_sound(const record::Session& state) {
  const auto is_apart = [&](std::uint64_t shard) { return shard < state.data_shard(); };
  if (std::ranges::count_if(state.data_open(), is_apart) != state.data_apart_size()) return false;
  std::uint64_t above = 0;
  const auto lies_behind = [&](std::uint64_t first, std::uint64_t count) {
    if (first < above || first > state.data_step() || count > state.data_step() - first) {
      return false;
    }
    above = first + count;
    return count > 0;
  };
  for (const std::uint64_t first : state.data_apart()) {
    if (!lies_behind(first, state.data_steps())) return false;
  }
  above = 0;
  if (state.data_left_size() % 2 != 0) return false;
  for (int i = 0; i < state.data_left_size(); i += 2) {
    const std::uint64_t count = state.data_left(i + 1);
    if (count >= state.data_steps() || !lies_behind(state.data_left(i), count)) return false;
  }
  return true;
}

ShardRemains remains_of(const record::Session& state) {
  ShardRemains remains;
  for (int i = 0; i < state.data_apart_size(); ++i) {
    remains.apart.emplace(state.data_open(i), state.data_apart(i));
  }
  for (int i = 0; i < state.data_left_size(); i += 2) {
    remains.left.push_back({state.data_left(i), state.data_left(i + 1)});
  }
  return remains;
}

bool counts_are_sound(const record::Session& state) {
  for (const std::uint64_t counter :
       {state.iteration(), state.stage(), state.data_fresh(), state.next_worker(), state.next_run(),
        state.merges(), state.contributions(), state.rejected(), state.discarded(), state.samples(),
        state.workers_joined(), state.data_step(), state.data_steps()}) {
    if (counter > kCounterMax) return false;
  }
  if (state.data_shard() > state.data_fresh()) return false;
  if (state.has_data_steps() && state.data_steps() == 0) return false;
  if (state.data_steps() > std::numeric_limits<std::uint32_t>::max()) return false;  // as of a run
  std::uint64_t above = 0;  // the smallest value that may follow
  for (const std::uint64_t shard : state.data_open()) {
    if (shard < above || shard >= state.data_fresh()) return false;
    above = shard + 1;
  }
  if (!remains_are_sound(state)) return false;
  return state.has_stage_count() && state.stage_start() <= state.iteration() &&
         std::isfinite(state.staleness_sum()) && state.staleness_sum() >= 0.0;
}

// The steps of a shard are written last: bytes that were cut off lack them, and so do states of
// SpeeDO versions whose trainings had no names, or whose shards were all of one length.
bool is_short(const record::Session& state) {
  return counts_are_sound(state) && !state.has_data_steps() &&
         state.has_training_high() == state.has_term();
}

Result<record::Session> decode(std::string_view bytes) {
  record::Session state;
  const bool parsed = state.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (!state.has_data_steps() && state.has_data_steps_whole()) {
    state.set_data_steps(state.data_steps_whole());
  }
  if (parsed && counts_are_sound(state) && state.has_term() && state.has_data_steps()) return state;
  if (parsed && is_short(state)) {
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
  return Origin{training_of(state), state.term(), state.iteration()};
}

Result<std::uint64_t> MasterSession::next_step_of(std::string_view bytes) {
  SPEEDO_ASSIGN(const record::Session state, decode(bytes));
  std::uint64_t first = state.data_fresh();
  for (auto open = state.data_open().rbegin(); open != state.data_open().rend(); ++open) {
    if (*open + 1 != first || *open < state.data_shard()) break;
    first = *open;
  }
  const std::uint64_t shards = first - state.data_shard();
  if (shards > (kCounterMax - state.data_step()) / state.data_steps()) {
    return Error{ErrorCode::kCorrupt,
                 "the saved state of the training session is damaged: its place in the data is "
                 "beyond any"};
  }
  return state.data_step() + shards * state.data_steps();
}

std::string MasterSession::Impl::save(const MergeOrder* merged) const {
  std::vector<ShardRange> used;
  MergeTally tally = tally_;
  if (merged != nullptr) {
    for (const Contribution& each : merged->contributions) used.push_back(each.data);
    tally.merged(merged->contributions, tally.newest());
  }
  const MergeTally::Counts& counts = tally.counts();
  record::Session state;
  state.set_iteration(tally.iteration());
  state.set_stage(stages_.number());
  state.set_stage_start(stages_.start());
  state.set_strategy(strategy_->save());
  state.set_data_fresh(leases_.fresh());
  const std::vector<std::uint64_t> open = leases_.open(used);
  state.mutable_data_open()->Add(open.begin(), open.end());
  state.set_data_shard(leases_.place().shard);
  state.set_data_step(leases_.place().step);
  for (const std::uint64_t shard : open) {
    if (shard < leases_.place().shard) state.add_data_apart(leases_.step_of(shard));
  }
  for (const StepRange& each : leases_.left()) {
    state.add_data_left(each.first);
    state.add_data_left(each.count);
  }
  state.set_data_steps(leases_.place().steps);
  state.set_next_worker(members_.next_worker());
  state.set_next_run(runs_.next().value);
  state.set_merges(counts.merges);
  state.set_contributions(counts.contributions);
  state.set_rejected(counts.rejected);
  state.set_discarded(counts.discarded);
  state.set_samples(counts.samples);
  state.set_staleness_sum(counts.staleness_sum);
  state.set_workers_joined(members_.joined());
  state.set_stage_count(stages_.count());
  state.set_training_high(training_.high);
  state.set_training_low(training_.low);
  state.set_term(config_.term);
  if (!state.strategy().empty()) state.set_strategy_name(schedule().strategy.name);
  save_told(merged, state);
  if (const auto emulated = members_.emulated()) state.set_emulated(*emulated);
  return state.SerializeAsString();
}

// A worker that learns too late that a contribution of it is merged would send again what the codec
// has left out of it, or take no elastic step.
void MasterSession::Impl::save_told(const MergeOrder* merged, record::Session& state) const {
  const UpdateSpec& update = schedule().update;
  if (!carries_residual(update) && !is_elastic(update.kind)) return;
  std::map<WorkerId, Runs::Told> all = runs_.departed();
  for (const auto& [id, member] : members_.all()) {
    const ProcessUuid process{member.uuid_high, member.uuid_low};
    if (const auto told = runs_.told(id, process)) all[id] = *told;
  }
  for (const auto& each : weighed(merged ? *merged : MergeOrder{}, schedule(), tally_.newest())) {
    const auto found = all.find(each.worker);
    if (found == all.end()) continue;
    found->second.merged_run = each.run.value;
    found->second.merged_weight = each.weight;
  }
  for (const auto& [id, told] : all) {
    if (told.merged_run == kNoRun || told.process == ProcessUuid{}) continue;
    record::Session::Told& message = *state.add_told();
    message.set_process_high(told.process.first);
    message.set_process_low(told.process.second);
    message.set_worker(id.value);
    message.set_run(told.merged_run);
    message.set_weight(told.merged_weight);
  }
}

Result<void> MasterSession::Impl::restore(std::string_view bytes) {
  SPEEDO_ASSERT(phase_ == Phase::kGathering);
  SPEEDO_ASSIGN(const record::Session state, decode(bytes));
  if (state.stage_count() != stages_.count()) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("the saved state is of a job with {} stages, this one has {}; resume "
                             "with the --hybrid of that job",
                             state.stage_count(), stages_.count())};
  }
  StageSwitch stages = stages_;
  const bool is_next = stages.restore(state.stage(), state.stage_start(), state.iteration());
  auto strategy = make_(stages.schedule().strategy).value();
  // What another strategy kept is of no use to this one.
  const std::string& own = stages.schedule().strategy.name;
  const bool is_its = !state.has_strategy_name() || state.strategy_name() == own;
  if (!is_next && is_its) SPEEDO_TRY(strategy->restore(state.strategy()));

  // Nothing fails from here on.
  strategy_ = std::move(strategy);
  stages_.restore(state.stage(), state.stage_start(), state.iteration());
  training_ = training_of(state);
  tally_.restore(state.iteration(),
                 {state.merges(), state.contributions(), state.rejected(), state.discarded(),
                  state.samples(), state.staleness_sum()});
  leases_ =
      ShardLeases(state.data_fresh(), {state.data_open().begin(), state.data_open().end()},
                  {state.data_shard(), state.data_step(), state.data_steps()}, remains_of(state));
  leases_.set_steps(schedule().update.steps_per_run);
  members_.restore(state.next_worker(), state.workers_joined(),
                   state.has_emulated() ? std::optional(state.emulated()) : std::nullopt);
  runs_.begin_above(state.next_run());
  for (const record::Session::Told& told : state.told()) {
    runs_.depart(WorkerId{told.worker()},
                 {{told.process_high(), told.process_low()}, told.run(), told.weight()});
  }
  show_progress();
  return {};
}

}  // namespace speedo
