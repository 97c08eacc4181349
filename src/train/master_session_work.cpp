// Runs: orders of the strategy, reports of the workers, shares of the data.

#include <algorithm>
#include <bit>
#include <cmath>

#include <speedo/base/assert.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

namespace {

// Weight of the newest run in a worker's measured speed.
constexpr double kSpeedSmoothing = 0.25;

}  // namespace

void MasterSession::Impl::handle(const master_event::Trained& event) {
  const TrainedMessage& message = event.message;
  Worker* worker = find(event.peer, message.worker);
  if (worker == nullptr || worker->run != RunId{message.run}) {
    return ignore(event.peer, "report");
  }
  const WorkerId id{message.worker};
  worker->run.reset();
  worker->finished = true;
  flaps_.finished(host_of(worker->name));
  measure_speed(*worker, message);
  progress_.compute_us += message.compute_us;
  progress_.exchange_us += message.exchange_us;
  progress_.data_wait_us += message.data_wait_us;
  const DataRange data = leases_.report(id);
  const float loss = std::bit_cast<float>(message.loss_bits);
  if (!std::isfinite(loss)) {
    note(true, "worker {} reports loss {} at iteration {}; its contribution is left out",
         worker->name, loss, iteration());
    leases_.use_up(data);
    progress_.rejected += 1;
    count_not_finite(1);
    if (open()) tell(Failed{id, RunId{message.run}});
    return;
  }
  const Report report{id, {message.run}, loss, {message.base_version}, message.samples, data, 1.0F};
  const bool inserted = reports_.emplace(id, report).second;
  SPEEDO_ASSERT(inserted);
  tell(Trained{id, report.run, loss, report.base, report.samples,
               message.compute_us + message.exchange_us + message.data_wait_us});
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
  leases_.use_up(take_report(command.worker).data);
  progress_.discarded += 1;
}

// The next stage starts everyone anew.
void MasterSession::Impl::order(const Train& command) {
  if (switching_ == Switching::kNo) queue_.emplace_back(command.worker);
}

// Carries out the head of the queue for as long as nothing has to be waited for. Trains do not wait
// for tests and snapshots, which work on copies; a merge does if one more of the kind is due.
void MasterSession::Impl::pump() {
  if (phase_ == Phase::kFinished) return;
  while (!busy()) {
    if (queue_.empty()) {
      if (!drained() || !enter_next_stage()) break;
    } else if (std::holds_alternative<WorkerId>(queue_.front())) {
      send_trains();
    } else {
      start_due_jobs();
      if (tests_.due() || snapshots_.due()) return;
      start_merge();
    }
  }
  if (!busy()) start_due_jobs();
}

// All Trains at the head start together, so that their shares of the data are dealt in order.
void MasterSession::Impl::send_trains() {
  std::vector<DataLeases::Order> orders;
  while (!queue_.empty() && std::holds_alternative<WorkerId>(queue_.front())) {
    const WorkerId id = std::get<WorkerId>(queue_.front());
    queue_.pop_front();
    const auto worker = workers_.find(id);
    if (worker == workers_.end()) continue;  // It has died since.
    if (progress_.paused) {
      held_.push_back(id);
    } else {
      orders.push_back({id, shares_for(worker->second)});
    }
  }
  const auto leases = leases_.start_runs(orders);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    Worker& worker = workers_.at(orders[i].worker);
    SPEEDO_ASSERT(!worker.run.has_value());
    worker.run = RunId{next_run_++};
    worker.ordered = true;
    worker.progressed = now_;
    worker.progress.reset();
    out_.emplace_back(master_command::SendTrain{
        worker.peer,
        {worker.run->value, iteration(), version_.value, leases[i].current.first, leases[i].next,
         leases[i].current.count, stage_index(), std::bit_cast<std::uint32_t>(rate_scale()),
         std::exchange(worker.merged_run, kNoRun),
         std::bit_cast<std::uint32_t>(std::exchange(worker.merged_weight, 1.0F))}});
  }
}

// Without the exchange: a worker that is given more shares pays the same for it.
void MasterSession::Impl::measure_speed(Worker& worker, const TrainedMessage& message) const {
  const std::uint64_t steps_us = message.compute_us + message.data_wait_us;
  if (message.samples == 0 || steps_us == 0) return;
  const double speed = static_cast<double>(message.samples) / static_cast<double>(steps_us);
  worker.speed = worker.speed == 0.0
                     ? speed
                     : worker.speed + kSpeedSmoothing * (speed - worker.speed);
}

double MasterSession::Impl::slowest_speed() const {
  double slowest = 0.0;
  for (const auto& [id, worker] : workers_) {
    if (worker.speed == 0.0) continue;
    slowest = slowest == 0.0 ? worker.speed : std::min(slowest, worker.speed);
  }
  return slowest;
}

std::uint64_t MasterSession::Impl::shares_for(const Worker& worker) const {
  if (!config_.shard_by_speed || worker.speed == 0.0) return 1;
  const StrategyEntry* entry = find_strategy(schedule().strategy.name);
  if (entry == nullptr || !entry->rounds) return 1;
  const double ratio = worker.speed / slowest_speed();
  if (ratio >= static_cast<double>(kSharesPerRunMax)) return kSharesPerRunMax;
  return static_cast<std::uint64_t>(std::llround(ratio));
}

}  // namespace speedo
