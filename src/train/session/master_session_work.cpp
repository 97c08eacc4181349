// The master's session: runs, merges, and the way from one stage to the next.

#include <algorithm>
#include <bit>
#include <cmath>

#include <speedo/base/assert.hpp>

#include "train/session/master_session_impl.hpp"

namespace speedo {

void MasterSession::Impl::handle(const master_event::Trained& event) {
  const TrainedMessage& message = event.message;
  const RunId run{message.run};
  const auto id = sender(event.peer, message.worker);
  if (!id || !runs_.is_under_way(*id, run)) return ignore(event.peer, "report");
  if (is_astray(message)) return part_from(*id, message.checked_version);
  runs_.finish(*id, message);
  if (const auto seat = seats_.reported(*id)) out_.add(master_command::EraseSeat{*seat});
  members_.finished_run(*id);
  figures_.reported(*id, message, clock_.now());
  const ShardRange data = leases_.report(*id);
  const float loss = std::bit_cast<float>(message.loss_bits);
  if (!std::isfinite(loss)) {
    const std::string first =
        message.fault.empty() ? "" : ", first not finite is " + clip_text(message.fault);
    fault_ = fmt::format("worker {} reports loss {}{}", members_.find(*id)->name, loss, first);
    out_.note(true, "{} at iteration {}; its contribution is left out", fault_, iteration());
    leases_.use_up(data);
    tally_.rejected(1);
    figures_.dropped(*id);
    divergence_.not_finite();
    end_if_diverged();
    if (lost_runs_.awaits(*id)) return give_up_lost(*id);
    if (open()) tell(Failed{*id, run});
    return;
  }
  const Contribution made{*id, run, loss, {message.base_version}, message.samples, data, 1.0F};
  // The strategy has decided on it.
  if (lost_runs_.awaits(*id)) return lost_runs_.report(made);
  work_.report(made);
  tell(Trained{*id,
               run,
               loss,
               {message.base_version},
               message.samples,
               message.phases.run_us()});
}

// Whether a replica's weights are known to differ from the master's.
bool MasterSession::Impl::is_astray(const TrainedMessage& message) const {
  return weights_check_ && message.checked_version == weights_check_->version.value &&
         message.weights_digest != weights_check_->digest;
}

// It comes back, and reads the weights.
void MasterSession::Impl::part_from(WorkerId id, std::uint64_t version) {
  const std::string reason = fmt::format(
      "the weights of worker {} differ from the master's at version {}: it reads them "
      "anew (products of factors round differently with machines and numbers of "
      "threads, which --no-factors avoids; everything does where one process has "
      "--cpu-isa portable; with --deterministic all round alike)",
      members_.find(id)->name, version);
  out_.note(true, "{}", reason);
  out_.refuse(members_.find(id)->peer, ErrorCode::kUnavailable, reason);
  remove(id, Departure::kExcused, reason);
}

void MasterSession::Impl::tell(const Event& event) {
  SPEEDO_ASSERT(is_training());
  for (const Command& command : strategy_->on(event)) {
    std::visit([this](const auto& each) { order(each); }, command);
  }
}

void MasterSession::Impl::order(const Merge& command) {
  work_.merge(command.worker, command.weight);
}

void MasterSession::Impl::order(const Average& command) { work_.average(command.workers); }

void MasterSession::Impl::order(const Discard& command) {
  leases_.use_up(work_.discard(command.worker).data);
  tally_.discarded();
  figures_.dropped(command.worker);
}

// The next stage starts everyone anew.
void MasterSession::Impl::order(const Train& command) {
  if (stages_.is_training()) work_.train(command.worker);
}

// Carries out the head of the queue for as long as nothing has to be waited for. Trains do not wait
// for tests and snapshots, which work on copies; a merge does if one more of the kind is due.
void MasterSession::Impl::pump() {
  if (finished()) return;
  const bool may_wait = is_training() && schedule().strategy.exact_workers != 0;
  if (may_wait && stages_.is_training()) introduce_ready();
  train_lost_again();
  while (!busy()) {
    const WorkQueue::Head head = work_.head();
    if (head == WorkQueue::Head::kNothing) {
      if (!drained() || !enter_next_stage()) break;
    } else if (head == WorkQueue::Head::kTrain) {
      if (asks_before_trains()) return;
      send_trains();
    } else {
      start_due_jobs();
      if (jobs_.holds_weights()) return;
      start_merge();
    }
  }
  if (busy()) return;
  start_due_jobs();
  expect_merge();
}

// States are of the weights that the snapshot has: workers are asked for them before they are sent
// on. True: the snapshot before is still being made.
bool MasterSession::Impl::asks_before_trains() {
  if (!config_.snapshot_workers) return false;
  start_due_jobs();
  return jobs_.snapshot_is_due();
}

// All Trains at the head start together, so that their shards of the data are dealt in order.
void MasterSession::Impl::send_trains() {
  std::vector<ShardLeases::Order> orders;
  for (const WorkerId id : work_.take_trains()) {
    if (members_.find(id) == nullptr) continue;  // It has died since.
    if (shortage_.paused()) {
      work_.hold(id);
    } else {
      orders.push_back({id, shards_for(id)});
    }
  }
  const auto leases = leases_.start_runs(orders);
  started_together_ = orders.size();
  for (std::size_t i = 0; i < orders.size(); ++i) send_train(orders[i].worker, leases[i]);
}

void MasterSession::Impl::send_train(WorkerId id, const ShardLeases::Lease& lease) {
  SPEEDO_ASSERT(members_.find(id)->ready);
  const Membership::Member& member = *members_.find(id);
  std::uint64_t seat = kNoSeat;
  if (!runs_.was_ordered(id)) {
    seat = seats_.give(id);
    runs_.arrive(id, {member.uuid_high, member.uuid_low});
  }
  const Runs::Order order = runs_.start(id, clock_.now());
  // Not of all who are ready: one that became so in the round's merge begins with the next round.
  const std::uint64_t exact = schedule().strategy.exact_workers;
  const float scale = stages_.rate_scale(iteration(), exact != 0 ? exact : started_together_);
  figures_.ordered(id, iteration());
  out_.add(master_command::SendTrain{
      member.peer,
      {order.run.value, iteration(), tally_.newest().value, lease.current.first, lease.next,
       lease.current.count, leases_.step_of(lease.current.first), leases_.step_of(lease.next),
       stages_.index(), std::bit_cast<std::uint32_t>(scale), order.merged_run,
       std::bit_cast<std::uint32_t>(order.merged_weight), seat}});
}

std::uint64_t MasterSession::Impl::shards_for(WorkerId worker) {
  if (!stages_.trains_in_rounds()) return 1;
  if (!ratios_.is_empty()) return ratios_.next(worker, members_.find(worker)->name);
  return config_.shard_by_speed ? runs_.shards_by_speed(worker) : 1;
}

void MasterSession::Impl::start_merge() {
  const MergeOrder& merge = work_.start_merge();
  master_command::StartMerge command = merge_command(work_.in_flight_id(), merge);
  command.state = save(&merge);
  out_.add(std::move(command));
}

// Without the state.
master_command::StartMerge MasterSession::Impl::merge_command(MergeId id,
                                                              const MergeOrder& merge) const {
  master_command::StartMerge command{id, iteration(), {}, merge.mean, stages_.index(), 1.0F, {}};
  // In rounds, where alone it may be scaled, by those whose mean it is.
  command.lr_scale = stages_.rate_scale(iteration(), merge.contributions.size());
  command.is_last = iteration() + 1 >= config_.max_iteration;
  command.waits_for_lost = waits_for_lost(merge);
  command.has_newcomers = members_.ready_count() > merge.contributions.size();
  command.contributions = weighed(merge, schedule(), tally_.newest());
  return command;
}

// The round's mean, if all who train or have reported take part. Said once for each set of runs.
void MasterSession::Impl::expect_merge() {
  if (!is_training() || !stages_.is_training() || !stages_.trains_in_rounds()) return;
  if (!work_.is_empty() || !runs_.any_under_way()) return;
  const Expectation now{runs_.next(), runs_.count_under_way() + work_.count_undecided(),
                        members_.ready_count()};
  if (expected_ == now) return;
  expected_ = now;
  MergeOrder merge{work_.undecided(), true};
  for (const auto& [worker, run] : runs_.under_way()) {
    merge.contributions.push_back(
        {.worker = worker, .run = run, .base = tally_.newest(), .data = leases_.current(worker)});
  }
  sort_by_data(merge.contributions);
  out_.add(master_command::ExpectMerge{merge_command({}, merge)});
}

void MasterSession::Impl::handle(const master_event::Merged& event) {
  MergeOrder merge = work_.end_merge(event.merge);
  weights_check_ = event.check;
  if (waits_for_lost(merge) && !lost_in(event).empty()) return put_off(std::move(merge), event);
  for (const MergeJob::Contribution& each : weighed(merge, schedule(), tally_.newest())) {
    if (!is_among(event.rejected, each.worker)) runs_.merged(each.worker, each.run, each.weight);
  }
  std::vector<Contribution> merged;
  for (const Contribution& each : merge.contributions) {
    if (is_among(event.rejected, each.worker)) continue;
    leases_.use_up(each.data);
    merged.push_back(each);
  }
  if (!merged.empty()) {
    SPEEDO_ASSERT(!open() || !jobs_.holds_weights());  // else the merge would have waited
    divergence_.merged();
    figures_.merged(merged, tally_.newest(), clock_.now());
    tally_.merged(merged, event.version);
    jobs_.reach(iteration(), test_interval_of(stages_.schedule_of(iteration())));
  }
  leave_out(merge, event);
  end_if_diverged();
  if (!open()) return;
  if (iteration() >= config_.max_iteration) {
    return begin_end({fmt::format("training is over: iteration {}", iteration()), std::nullopt,
                      test_interval_of(stages_.schedule_of(iteration())) != 0,
                      config_.snapshot_at_end});
  }
  if (!stages_.is_training() || !stages_.is_over(iteration())) return;
  stages_.drain(iteration());
  work_.drop_trains();
}

void MasterSession::Impl::handle(const master_event::MergeFailed& event) {
  work_.end_merge(event.merge);
  fail(event.error);
}

std::uint64_t MasterSession::Impl::test_interval_of(const Schedule& stage) const {
  return stage.test_interval.value_or(config_.test_interval);
}

bool MasterSession::Impl::drained() const {
  return stages_.is_draining() && is_training() && work_.is_empty() && !runs_.any_under_way();
}

// The runs of the stage that ended are over; what its strategy keeps is discarded, and a fresh
// strategy meets all workers at once.
bool MasterSession::Impl::enter_next_stage() {
  SPEEDO_ASSERT(drained());
  start_due_jobs();
  if (jobs_.holds_weights()) return false;
  for (const Contribution& each : work_.take_undecided()) {
    leases_.use_up(each.data);
    tally_.discarded();
    figures_.dropped(each.worker);
  }
  members_.strategy_is_new();
  note_left_out(stages_.enter(iteration()));
  leases_.set_steps(schedule().update.steps_per_run);
  note_left_data();
  strategy_ = make_(schedule().strategy).value();
  out_.note(false, "stage {} ({}) begins at iteration {}", stages_.index() + 1,
            schedule().strategy.name, iteration());
  out_.add(master_command::EnterStage{stages_.index(), save(nullptr)});
  return true;
}

void MasterSession::Impl::note_left_out(std::uint64_t stages) {
  if (stages == 0) return;
  out_.note(true,
            "{} left out: the runs under way at the end of the stage before had all its "
            "iterations; a stage that is to take place needs more iterations than there are "
            "workers",
            stages == 1 ? "a stage is" : fmt::format("{} stages are", stages));
}

void MasterSession::Impl::note_left_data() {
  if (leases_.steps_left() == 0 || config_.offset_shards) return;
  out_.note(true,
            "{} step{} of the data {} left out, in {} place{}, as too few lie together for a run "
            "of {}; they are trained if runs become short enough",
            leases_.steps_left(), leases_.steps_left() == 1 ? "" : "s",
            leases_.steps_left() == 1 ? "is" : "are", leases_.left().size(),
            leases_.left().size() == 1 ? "" : "s", leases_.place().steps);
}

void MasterSession::Impl::handle(const master_event::StageEntered& event) {
  stages_.entered();
  tally_.republished(event.version);
  if (is_training()) begin_stage();
}

void MasterSession::Impl::handle(const master_event::StageFailed& event) {
  stages_.entered();
  fail(event.error);
}

void MasterSession::Impl::begin_stage() {
  const Joined joined = members_.introduce_all();
  members_.note_groups(schedule().strategy.groups, out_);
  if (!joined.workers.empty()) tell(joined);
}

}  // namespace speedo
