// The master's session: dispatch of events, workers, time.

#include <speedo/train/master_session.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "train/note_text.hpp"
#include "train/session/master_session_impl.hpp"

namespace speedo {

namespace {

// Faults of the store that all workers share: the next worker would meet them, too. A refusal is
// none: each worker opens the store with credentials of its own.
bool is_store_fault(ErrorCode code) {
  return code == ErrorCode::kFull || code == ErrorCode::kCannotWrite;
}

MasterConfig with_sound_limits(MasterConfig config) {
  config.workers_min = std::max<std::uint64_t>(config.workers_min, 1);
  config.workers_start = std::max(config.workers_start, config.workers_min);
  return config;
}

}  // namespace

MasterSession::MasterSession(MasterConfig config, StrategyFactory make)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(make))) {}

MasterSession::~MasterSession() = default;

MasterCommands MasterSession::on(const MasterEvent& event) { return impl_->on(event); }

std::string MasterSession::save() const { return impl_->save(nullptr); }

Result<void> MasterSession::restore(std::string_view state) { return impl_->restore(state); }

const MasterProgress& MasterSession::progress() const { return impl_->progress(); }

const TrainingId& MasterSession::training() const { return impl_->training(); }

bool MasterSession::finished() const { return impl_->finished(); }

MasterSession::Impl::Impl(MasterConfig config, StrategyFactory make)
    : config_(with_sound_limits(std::move(config))),
      make_(std::move(make)),
      training_(config_.training),
      members_(config_),
      shortage_(config_),
      store_absence_(config_.store_timeout),
      leases_(0, {}, {.shard = 0, .step = config_.first_step, .steps = 1}),
      runs_(config_.first_run),
      ratios_(config_.shard_ratios),
      tally_(config_.start_iteration, config_.first_version),
      divergence_(config_.non_finite_max),
      stages_(config_.stages, config_.start_iteration),
      jobs_(config_.snapshot_interval),
      seats_(config_.seats) {
  strategy_ = make_(schedule().strategy).value();
  leases_.set_steps(schedule().update.steps_per_run);
  show_progress();
}

MasterCommands MasterSession::Impl::on(const MasterEvent& event) {
  if (finished()) return {};
  std::visit([this](const auto& each) { handle(each); }, event);
  if (phase_ == Phase::kGathering && iteration() >= config_.max_iteration) {
    begin_end({fmt::format("nothing to train: iteration {} is not below the maximum, {}",
                           iteration(), config_.max_iteration),
               std::nullopt, test_interval_of(stages_.schedule_of(iteration())) != 0,
               config_.snapshot_at_end});
  }
  pump();
  erase_records_of_gone();
  end_if_complete();
  finish_snapshot();
  check_invariants();
  show_progress();
  return out_.take();
}

void MasterSession::Impl::check_invariants() const {
  SPEEDO_ASSERT(is_training() || (work_.is_clear() && !lost_runs_.is_under_way()));
  SPEEDO_ASSERT(stages_.is_training() || !work_.has_trains());
  SPEEDO_ASSERT(is_training() || !shortage_.paused());
  SPEEDO_ASSERT(!open() || !ending_.has_value());
  SPEEDO_ASSERT(phase_ != Phase::kFinishing || ending_.has_value());
}

void MasterSession::Impl::show_progress() {
  progress_.term = config_.term;
  progress_.training = is_training();
  progress_.paused = shortage_.paused();
  members_.show(progress_);
  runs_.show(progress_);
  tally_.show(progress_);
  stages_.show(progress_);
  jobs_.show(progress_);
}

void MasterSession::Impl::handle(const master_event::Hello& event) {
  if (!open()) return ending_->send_away(event.peer, out_);
  // Nothing is sent to an earlier incarnation: it may arrive at the new one.
  for (const WorkerId id : members_.earlier_lives(event)) {
    out_.note(false, "worker {} begins a new incarnation", members_.find(id)->name);
    remove(id, runs_.is_busy(id) ? Departure::kFlap : Departure::kExcused,
           "it began a new incarnation");
  }
  if (members_.turns_away(event, clock_.now(), out_)) return;
  members_.admit(event, clock_.now(), out_);
  figures_.admitted(*members_.at(event.peer), event.message);
}

void MasterSession::Impl::handle(const master_event::Ready& event) {
  const auto id = sender(event.peer, event.message.worker);
  const bool is_repeated = id && members_.find(*id)->ready;
  // A worker that waits for its first order repeats its Ready: nothing to do.
  if (is_repeated && !runs_.was_ordered(*id)) return;
  if (!id || is_repeated) return ignore(event.peer, "ready message");
  if (!members_.make_ready(*id, event.message, out_)) {
    return remove(*id, Departure::kExcused, "refused: its model is another one");
  }
  update_pause();
  if (phase_ == Phase::kGathering) {
    if (members_.ready_count() >= shortage_.wanted(false)) start_training();
  } else if (stages_.is_training()) {
    introduce_ready();
  }
}

// A process that was another worker overwrites what that one contributed from its memory when it
// trains again. Where it might do so in the same round it waits until that is merged.
bool MasterSession::Impl::waits_for_own(WorkerId id) const {
  if (schedule().strategy.exact_workers == 0) return false;
  const Membership::Member& member = *members_.find(id);
  return std::ranges::any_of(
      runs_.departed_of({member.uuid_high, member.uuid_low}),
      [this](WorkerId each) { return work_.is_wanted(each) || lost_runs_.takes_part(each); });
}

void MasterSession::Impl::introduce_ready() {
  std::vector<WorkerId> newcomers;
  for (const auto& [id, member] : members_.all()) {
    if (member.ready && !member.known && !waits_for_own(id)) newcomers.push_back(id);
  }
  for (const WorkerId id : newcomers) tell(members_.introduce(id));
}

// All that are ready start together: a synchronous first round has them all.
void MasterSession::Impl::start_training() {
  if (iteration() >= config_.max_iteration) return;
  phase_ = Phase::kTraining;
  out_.note(false, "training starts at iteration {} with {}", iteration(),
            count_workers(members_.ready_count()));
  members_.note_absent("--shard-by names", ratios_.names(), out_);
  note_left_data();
  if (config_.test_at_start && test_interval_of(schedule()) != 0) jobs_.request_test(iteration());
  start_due_jobs();
  begin_stage();
}

void MasterSession::Impl::handle(const master_event::Leave& event) {
  if (!open()) {
    const auto leaver = members_.at(event.peer);
    if (leaver && leaver->value == event.message.worker) gone_at_end(*leaver);
    return;
  }
  const auto id = sender(event.peer, event.message.worker);
  if (!id) return ignore(event.peer, "leave message");
  const Membership::Member& member = *members_.find(*id);
  const std::string reason = clip_text(event.message.reason);
  const bool failed = event.message.code != 0;
  note_leave(member.name, event.message.code, reason);
  if (failed && !member.ready) members_.could_not_work(*id, reason);
  // One that could not reach the store is not to blame.
  const ErrorCode code = error_code_of(event.message.code);
  remove(*id, failed && is_transient(code) ? Departure::kExcused : Departure::kFlap,
         "it left: " + reason);
  if (failed && phase_ == Phase::kGathering) {
    out_.note(true, "still waiting for workers: {} of {} are ready", members_.ready_count(),
              shortage_.wanted(false));
  }
  if (!failed || !is_store_fault(code) || members_.ready_count() > 0) return;
  begin_end(
      {"the last worker could not go on: " + reason, Error{code, reason}, false, is_training()});
}

// While the store fails workers each comes back and leaves again, many times a second.
void MasterSession::Impl::note_leave(const std::string& name, std::uint32_t code,
                                     const std::string& reason) {
  const bool is_by_store = code != 0 && is_transient(error_code_of(code));
  if (is_by_store && !store_leave_notes_.is_due(clock_.now())) {
    store_leaves_ += 1;
    return;
  }
  const std::uint64_t more = is_by_store ? std::exchange(store_leaves_, 0) : 0;
  const std::string others =
      more == 0 ? "" : fmt::format(" (workers left {} times more since that was said)", more);
  out_.note(code != 0, "worker {} left: {}{}", name, reason, others);
}

void MasterSession::Impl::handle(const master_event::PeerLost& event) {
  const auto id = members_.at(event.peer);
  if (!id) return;
  if (!open()) return gone_at_end(*id);
  out_.note(true, "worker {} is gone: {}", members_.find(*id)->name, event.reason);
  remove(*id, Departure::kFlap, event.reason);
}

// The last snapshot does not wait for it.
void MasterSession::Impl::gone_at_end(WorkerId id) {
  SPEEDO_ASSERT(!open());
  members_.gone_at_end(id);
  states_.gone(id, out_);
}

void MasterSession::Impl::handle(const master_event::Beat& event) {
  if (const auto id = sender(event.peer, event.message.worker)) {
    return runs_.beat(*id, event.message, clock_.now());
  }
  if (!open()) return;
  members_.ignore();
  if (members_.at(event.peer)) return;
  out_.refuse(
      event.peer, ErrorCode::kTimeout,
      fmt::format("worker {} is not admitted any more; it may join again", event.message.worker));
}

// None if the message is not to be acted on, also once training is over.
std::optional<WorkerId> MasterSession::Impl::sender(PeerId peer, std::uint64_t claimed) {
  if (!open()) return std::nullopt;
  return members_.sender(peer, claimed, clock_.now());
}

// Once training is over, what workers were still at is expected and not worth a line.
void MasterSession::Impl::ignore(PeerId peer, std::string_view what) {
  if (open()) members_.ignore(peer, what, out_);
}

// What the worker reported before stays: it lies in the store, whole.
void MasterSession::Impl::remove(WorkerId id, Departure departure, const std::string& why) {
  SPEEDO_ASSERT(open());
  const Membership::Member member = members_.remove(id, departure, clock_.now(), out_);
  figures_.gone(id, why, clock_.now());
  leases_.give_back(id);
  give_up_lost(id);
  seats_.gone(id);
  states_.gone(id, out_);
  ratios_.remove(id);
  // Memory is offered to the master before the first order.
  const bool had_orders = runs_.remove(id, {member.uuid_high, member.uuid_low});
  if (had_orders || !config_.memory.empty()) work_.worker_is_gone(id);
  if (!member.ready) return;
  if (had_orders && config_.minds_lost_states) {
    out_.note(true, "what worker {} had alone is lost with it: training may not come to the bits "
              "that it would have had (--deterministic); the last checkpoint has the states of all",
              member.name);
  }
  update_pause();
  if (member.known && is_training()) tell(Left{id});
}

void MasterSession::Impl::erase_records_of_gone() {
  if (finished()) return;  // superseded: they are another master's to erase
  if (lost_runs_.is_under_way()) return;  // the round's others may have gone
  for (const WorkerId worker : work_.take_unwanted()) {
    out_.add(master_command::EraseWorker{worker});
  }
}

void MasterSession::Impl::handle(const master_event::Tick& event) {
  if (const auto slept = clock_.tick(event.now)) {
    out_.note(false, "this master slept for {} s; that time counts against nobody",
              whole_seconds(*slept));
  }
  states_.tick(clock_.now(), out_);
  watch_workers();
  watch_store();
  watch_shortage();
  if (ending_) ending_->retry(iteration(), clock_.now(), jobs_);
}

void MasterSession::Impl::watch_workers() {
  if (!open()) return;
  const Instant now = clock_.now();
  std::vector<std::pair<WorkerId, std::string>> dead;
  for (const auto& [id, member] : members_.all()) {
    const std::chrono::seconds silence = config_.worker_timeout;
    if (silence.count() != 0 && now - member.heard >= silence) {
      dead.emplace_back(id, fmt::format("worker {} has not been heard of for {} s "
                                        "(--worker-timeout)",
                                        member.name, silence.count()));
    } else if (const auto run = runs_.stalled(id, now, config_.stall_timeout)) {
      dead.emplace_back(id, fmt::format("worker {} is alive, but its run {} has made no progress "
                                        "for {} s (--stall-timeout)",
                                        member.name, run->value, config_.stall_timeout.count()));
    }
  }
  for (const auto& [id, reason] : dead) declare_dead(id, reason);
}

void MasterSession::Impl::declare_dead(WorkerId id, const std::string& reason) {
  out_.note(true, "{}; going on without it", reason);
  out_.refuse(members_.find(id)->peer, ErrorCode::kTimeout, reason);
  remove(id, Departure::kFlap, reason);
}

WorkerShortage::View MasterSession::Impl::shortage_view() const {
  return {is_training(), members_.ready_count(), iteration(), members_.last_failure()};
}

// What the strategy has ordered during a pause goes out when training goes on.
void MasterSession::Impl::update_pause() {
  const auto change = shortage_.update(shortage_view(), clock_.now(), out_);
  if (change == WorkerShortage::Change::kGoesOn) work_.go_on();
}

void MasterSession::Impl::watch_shortage() {
  if (!open()) return;
  const auto reason =
      shortage_.watch(shortage_view(), store_absence_.is_away(), clock_.now(), out_);
  if (reason) begin_end({*reason, Error{ErrorCode::kTimeout, *reason}, false, is_training()});
}

}  // namespace speedo
