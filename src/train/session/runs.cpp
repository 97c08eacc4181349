#include "train/session/runs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

namespace speedo {

namespace {

// Weight of the newest run in a worker's measured speed.
constexpr double kSpeedSmoothing = 0.25;
// Whoever comes back does so within seconds.
constexpr std::size_t kDepartedMax = 1024;

}  // namespace

void Runs::begin_above(std::uint64_t next_run) {
  SPEEDO_ASSERT(workers_.empty());
  next_ = std::max(next_, next_run);
}

void Runs::arrive(WorkerId id, const ProcessUuid& process) {
  SPEEDO_ASSERT(!workers_.contains(id));
  const auto last = std::find_if(departed_.rbegin(), departed_.rend(), [&](const auto& each) {
    return each.second.process == process;
  });
  if (last == departed_.rend()) return;
  Worker& worker = workers_[id];
  worker.merged_run = last->second.merged_run;
  worker.merged_weight = last->second.merged_weight;
  departed_.erase(last->first);
}

Runs::Order Runs::start(WorkerId id, Instant now) {
  Worker& worker = workers_[id];
  SPEEDO_ASSERT(!worker.run.has_value());
  worker.run = worker.last_run = RunId{next_++};
  worker.progressed = now;
  worker.progress.reset();
  const Order order{*worker.run, std::exchange(worker.merged_run, kNoRun),
                    std::exchange(worker.merged_weight, 1.0F)};
  if (order.merged_run != kNoRun) {
    worker.told_run = order.merged_run;
    worker.told_weight = order.merged_weight;
  }
  return order;
}

Runs::Order Runs::last(WorkerId id) const {
  SPEEDO_ASSERT(workers_.contains(id));
  const Worker& worker = workers_.at(id);
  return {worker.last_run, worker.merged_run, worker.merged_weight};
}

bool Runs::is_under_way(WorkerId worker, RunId run) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second.run == run;
}

bool Runs::is_busy(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second.run.has_value();
}

std::vector<std::pair<WorkerId, RunId>> Runs::under_way() const {
  std::vector<std::pair<WorkerId, RunId>> runs;
  for (const auto& [id, worker] : workers_) {
    if (worker.run) runs.emplace_back(id, *worker.run);
  }
  return runs;
}

std::uint64_t Runs::count_under_way() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      workers_, [](const auto& each) { return each.second.run.has_value(); }));
}

void Runs::beat(WorkerId id, const BeatMessage& message, Instant now) {
  if (!is_under_way(id, RunId{message.run})) return;
  Worker& worker = workers_.at(id);
  if (worker.progress == message.progress) return;
  worker.progress = message.progress;
  worker.progressed = now;
}

std::optional<RunId> Runs::stalled(WorkerId id, Instant now, std::chrono::seconds limit) const {
  if (!is_busy(id) || limit.count() == 0) return std::nullopt;
  const Worker& worker = workers_.at(id);
  return now - worker.progressed >= limit ? worker.run : std::nullopt;
}

void Runs::finish(WorkerId id, const TrainedMessage& message) {
  SPEEDO_ASSERT(is_under_way(id, RunId{message.run}));
  Worker& worker = workers_.at(id);
  worker.run.reset();
  measure_speed(worker, message);
  phases_ += message.phases;
  traffic_ += message.traffic;
  read_faults_ += message.read_faults;
}

void Runs::merged(WorkerId id, RunId run, float weight) {
  const auto tell = [&](auto& told) {
    told.merged_run = run.value;
    told.merged_weight = weight;
  };
  if (const auto found = workers_.find(id); found != workers_.end()) {
    tell(found->second);
  } else if (const auto gone = departed_.find(id); gone != departed_.end()) {
    tell(gone->second);
  }
}

bool Runs::remove(WorkerId id, const ProcessUuid& process) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return false;
  if (process != ProcessUuid{}) depart(id, *told(id, process));
  workers_.erase(found);
  return true;
}

std::optional<Runs::Told> Runs::told(WorkerId id, const ProcessUuid& process) const {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return std::nullopt;
  const Worker& worker = found->second;
  if (worker.merged_run != kNoRun) return Told{process, worker.merged_run, worker.merged_weight};
  return Told{process, worker.told_run, worker.told_weight};
}

std::vector<WorkerId> Runs::departed_of(const ProcessUuid& process) const {
  std::vector<WorkerId> all;
  for (const auto& [worker, told] : departed_) {
    if (told.process == process) all.push_back(worker);
  }
  return all;
}

void Runs::depart(WorkerId id, const Told& told) {
  if (departed_.size() == kDepartedMax) departed_.erase(departed_.begin());
  departed_[id] = told;
}

// The exchange is left out: a worker that is given more shards pays the same for it.
void Runs::measure_speed(Worker& worker, const TrainedMessage& message) {
  const std::uint64_t steps_us = message.phases.compute_us() + message.phases.data_us;
  if (message.samples == 0 || steps_us == 0) return;
  const double speed = static_cast<double>(message.samples) / static_cast<double>(steps_us);
  worker.speed =
      worker.speed == 0.0 ? speed : worker.speed + kSpeedSmoothing * (speed - worker.speed);
  SPEEDO_ASSERT(worker.speed > 0.0);
}

double Runs::slowest_speed() const {
  double slowest = 0.0;
  for (const auto& [id, worker] : workers_) {
    if (worker.speed == 0.0) continue;
    slowest = slowest == 0.0 ? worker.speed : std::min(slowest, worker.speed);
  }
  return slowest;
}

std::uint64_t Runs::shards_by_speed(WorkerId id) const {
  const auto found = workers_.find(id);
  if (found == workers_.end() || found->second.speed == 0.0) return 1;
  const double ratio = found->second.speed / slowest_speed();
  SPEEDO_ASSERT(ratio >= 1.0);
  if (ratio >= static_cast<double>(kShardsPerRunMax)) return kShardsPerRunMax;
  return static_cast<std::uint64_t>(std::llround(ratio));
}

void Runs::show(MasterProgress& progress) const {
  progress.phases = phases_;
  progress.traffic = traffic_;
  progress.read_faults = read_faults_;
}

}  // namespace speedo
