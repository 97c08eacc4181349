// Runs and merges.

#include <algorithm>
#include <bit>
#include <cmath>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

void MasterSession::Impl::handle(const master_event::Trained& event) {
  const TrainedMessage& message = event.message;
  Worker* worker = find(event.peer, message.worker);
  if (worker == nullptr || worker->run != RunId{message.run}) {
    return ignore(event.peer, "report");
  }
  const WorkerId id{message.worker};
  worker->run.reset();
  worker->run_started.reset();
  leases_.use_up(id);
  const float loss = std::bit_cast<float>(message.loss_bits);
  if (!std::isfinite(loss)) {
    note(true, "worker {} ({}) reports loss {} at iteration {}; its contribution is left out",
         id.value, worker->name, loss, iteration());
    count_not_finite(1);
    if (open()) tell(Failed{id, RunId{message.run}});
    return;
  }
  const Report report{id, {message.run}, loss, {message.base_version}, message.samples, 1.0F};
  const bool inserted = reports_.emplace(id, report).second;
  SPEEDO_ASSERT(inserted);
  tell(Trained{id, report.run, loss, report.base, report.samples});
}

void MasterSession::Impl::tell(const Event& event) {
  SPEEDO_ASSERT(phase_ == Phase::kTraining);
  for (const Command& command : strategy_->on(event)) {
    std::visit([this](const auto& each) { order(each); }, command);
  }
}

MasterSession::Impl::Report MasterSession::Impl::take_report(WorkerId worker) {
  const auto found = reports_.find(worker);
  SPEEDO_ASSERT(found != reports_.end());  // A strategy decides on each contribution once.
  return reports_.extract(found).mapped();
}

void MasterSession::Impl::order(const Merge& command) {
  Report report = take_report(command.worker);
  report.weight = command.weight;
  queue_.emplace_back(MergeOrder{{report}, false});
}

void MasterSession::Impl::order(const Average& command) {
  SPEEDO_ASSERT(!command.workers.empty());
  MergeOrder merge{{}, true};
  for (const WorkerId worker : command.workers) merge.reports.push_back(take_report(worker));
  queue_.emplace_back(std::move(merge));
}

void MasterSession::Impl::order(const Discard& command) {
  take_report(command.worker);
  progress_.discarded += 1;
}

void MasterSession::Impl::order(const Train& command) { queue_.emplace_back(command.worker); }

// Carries out the head of the queue for as long as nothing has to be waited for. Trains do not wait
// for tests and snapshots, which work on copies; a merge does if one more of the kind is due.
void MasterSession::Impl::pump() {
  while (!in_flight_ && !queue_.empty()) {
    if (std::holds_alternative<WorkerId>(queue_.front())) {
      send_trains();
      continue;
    }
    start_due_jobs();
    if (tests_.due() || snapshots_.due()) return;
    start_merge();
  }
  if (!in_flight_) start_due_jobs();
}

// All Trains at the head start together, so that their shares of the data are dealt in order.
void MasterSession::Impl::send_trains() {
  std::vector<WorkerId> ids;
  while (!queue_.empty() && std::holds_alternative<WorkerId>(queue_.front())) {
    const WorkerId id = std::get<WorkerId>(queue_.front());
    queue_.pop_front();
    if (workers_.contains(id)) ids.push_back(id);  // It may have died since.
  }
  const auto leases = leases_.start_runs(ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Worker& worker = workers_.at(ids[i]);
    SPEEDO_ASSERT(!worker.run.has_value());
    worker.run = RunId{next_run_++};
    worker.run_started = now_;
    out_.emplace_back(master_command::SendTrain{
        worker.peer, {worker.run->value, iteration(), version_.value, leases[i].current,
                      leases[i].next}});
  }
}

void MasterSession::Impl::start_merge() {
  MergeInFlight merge{{next_merge_++}, std::get<MergeOrder>(std::move(queue_.front()))};
  queue_.pop_front();
  master_command::StartMerge command{merge.id, iteration(), {}, merge.order.mean};
  for (const Report& report : merge.order.reports) {
    command.contributions.push_back({report.worker, report.run, report.weight});
  }
  in_flight_ = std::move(merge);
  out_.emplace_back(std::move(command));
}

void MasterSession::Impl::handle(const master_event::Merged& event) {
  SPEEDO_ASSERT(in_flight_.has_value());
  SPEEDO_ASSERT(in_flight_->id == event.merge);
  std::vector<Report> merged;
  std::uint64_t rejected = 0;
  for (const Report& report : in_flight_->order.reports) {
    if (std::ranges::find(event.rejected, report.worker) == event.rejected.end()) {
      merged.push_back(report);
      continue;
    }
    rejected += 1;
    note(true, "the contribution of worker {} (run {}) is not finite, missing or corrupt; left out",
         report.worker.value, report.run.value);
  }
  in_flight_.reset();
  if (!merged.empty()) count_merged(merged, event.version);
  if (rejected != 0) count_not_finite(rejected);
  if (!open() || iteration() < config_.max_iteration) return;
  begin_end({fmt::format("training is over: iteration {}", iteration()), std::nullopt,
             config_.test_interval != 0, config_.snapshot_at_end});
}

// One iteration, whatever the number of contributions.
void MasterSession::Impl::count_merged(const std::vector<Report>& merged, Version version) {
  not_finite_in_row_ = 0;
  double loss_sum = 0.0;
  for (const Report& report : merged) {
    loss_sum += report.loss;
    progress_.samples += report.samples;
    if (version_ > report.base) {
      progress_.staleness_sum += static_cast<double>(version_.value - report.base.value);
    }
  }
  progress_.merges += 1;
  progress_.contributions += merged.size();
  progress_.last_loss = static_cast<float>(loss_sum / static_cast<double>(merged.size()));
  progress_.iteration += 1;
  version_ = version;
  tests_.reach(iteration());
  snapshots_.reach(iteration());
}

void MasterSession::Impl::count_not_finite(std::uint64_t runs) {
  progress_.rejected += runs;
  not_finite_in_row_ += runs;
  if (!open() || not_finite_in_row_ < kNonFiniteRunsMax) return;
  const std::string reason = fmt::format(
      "training diverged: {} runs in a row without a finite loss and contribution at iteration {}; "
      "lower base_lr, set clip_gradients or check the data",
      not_finite_in_row_, iteration());
  begin_end({reason, Error{ErrorCode::kNotFinite, reason}, false, false});
}

void MasterSession::Impl::handle(const master_event::MergeFailed& event) {
  SPEEDO_ASSERT(in_flight_.has_value());
  SPEEDO_ASSERT(in_flight_->id == event.merge);
  in_flight_.reset();
  if (!open()) return fail_end(event.error);
  begin_end({"the master cannot go on: " + event.error.message, event.error, false, true});
}

}  // namespace speedo
