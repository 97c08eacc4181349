#include "train/session/job_figures.hpp"

#include <chrono>
#include <utility>

#include <speedo/base/assert.hpp>

#include "train/note_text.hpp"

namespace speedo {
namespace {

constexpr std::size_t kGoneMax = 16;
constexpr Instant kGoneShown = std::chrono::minutes(5);

}  // namespace

const char* to_string(WorkerState state) {
  switch (state) {
    case WorkerState::kPreparing: return "preparing";
    case WorkerState::kWaiting: return "waiting";
    case WorkerState::kTraining: return "training";
    case WorkerState::kGone: return "gone";
  }
  return "unknown";
}

void JobFigures::admitted(WorkerId worker, const HelloMessage& hello) {
  WorkerStatus& status = workers_[worker].status;
  status.worker = worker;
  status.name = clip_text(hello.name);
  status.device = clip_text(hello.device);
}

// A contribution may outlive its worker.
WorkerStatus* JobFigures::find(WorkerId worker) {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? nullptr : &found->second.status;
}

void JobFigures::ordered(WorkerId worker, std::uint64_t iteration) {
  if (WorkerStatus* const status = find(worker)) status->iteration = iteration;
}

void JobFigures::reported(WorkerId id, const TrainedMessage& message, Instant now) {
  SPEEDO_ASSERT(find(id) != nullptr);
  Worker& worker = workers_.at(id);
  worker.status.runs += 1;
  worker.status.samples += message.samples;
  worker.status.phases += message.phases;
  worker.status.traffic += message.traffic;
  worker.status.read_faults += message.read_faults;
  worker.images.add(now, message.samples);
  worker.bytes.add(now, message.traffic.pushed_bytes + message.traffic.pulled_bytes);
  seen_.run_seconds.add(static_cast<double>(message.phases.run_us()) / 1e6);
}

void JobFigures::merged(std::span<const Contribution> contributions, Version newest, Instant now) {
  std::uint64_t samples = 0;
  for (const Contribution& each : contributions) {
    const std::uint64_t staleness = staleness_of(each, newest);
    samples += each.samples;
    seen_.staleness.add(static_cast<double>(staleness));
    if (WorkerStatus* const status = find(each.worker)) status->staleness = staleness;
  }
  merges_.add(now, 1);
  images_.add(now, samples);
}

void JobFigures::dropped(WorkerId worker) {
  if (WorkerStatus* const status = find(worker)) status->dropped += 1;
}

void JobFigures::gone(WorkerId worker, const std::string& why, Instant now) {
  auto found = workers_.extract(worker);
  SPEEDO_ASSERT(!found.empty());
  WorkerStatus status = std::move(found.mapped().status);
  status.state = WorkerState::kGone;
  status.gone_why = why;
  gone_.push_back({std::move(status), now});
  if (gone_.size() > kGoneMax) gone_.pop_front();
}

void JobFigures::show(JobStatus& status, Instant now) const {
  status.merges_per_second = merges_.per_second(now);
  status.images_per_second = images_.per_second(now);
  status.staleness = seen_.staleness;
  status.run_seconds = seen_.run_seconds;
  for (const auto& [id, worker] : workers_) {
    WorkerStatus& row = status.workers.emplace_back(worker.status);
    row.images_per_second = worker.images.per_second(now);
    row.bytes_per_second = worker.bytes.per_second(now);
  }
  for (const Gone& gone : gone_) {
    if (now - gone.since > kGoneShown) continue;
    WorkerStatus& row = status.workers.emplace_back(gone.status);
    row.silent_ms = whole_milliseconds(now - gone.since);
  }
}

}  // namespace speedo
