#include "train/status_messages.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace speedo {
namespace {

constexpr std::uint64_t kIsTraining = 1, kIsPaused = 2, kIsStoreAway = 4, kIsOver = 8;

std::uint64_t flag(bool is_set, std::uint64_t which) { return is_set ? which : 0; }

std::uint32_t bits(const std::optional<float>& value) {
  return std::bit_cast<std::uint32_t>(value.value_or(std::numeric_limits<float>::quiet_NaN()));
}

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

std::optional<float> known_float(std::uint32_t bits) {
  const auto value = std::bit_cast<float>(bits);
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

// Whatever came: a rate that a person is shown.
double rate(std::uint64_t bits) {
  const auto value = std::bit_cast<double>(bits);
  return std::isfinite(value) && value > 0.0 ? value : 0.0;
}

JobStatusMessage job_message(const JobStatus& status) {
  const MasterProgress& progress = status.progress;
  JobStatusMessage message;
  message.job = clip_text(status.job);
  message.training = clip_text(status.training);
  message.schedule = clip_text(status.schedule);
  message.flags = flag(progress.training, kIsTraining) | flag(progress.paused, kIsPaused) |
                  flag(status.store_away, kIsStoreAway) | flag(status.over, kIsOver);
  message.iteration = progress.iteration;
  message.max_iteration = status.max_iteration;
  message.merges = progress.merges;
  message.contributions = progress.contributions;
  message.rejected = progress.rejected;
  message.discarded = progress.discarded;
  message.ignored = progress.ignored;
  message.samples = progress.samples;
  message.term = progress.term;
  message.workers_alive = progress.workers_alive;
  message.workers_min = status.workers_min;
  message.stage = progress.stage;
  message.stages = status.stages;
  message.uptime_ms = status.uptime_ms;
  message.loss_bits = bits(progress.last_loss);
  message.accuracy_bits = bits(progress.accuracy);
  message.test_loss_bits = bits(progress.test_loss);
  message.staleness_sum_bits = bits(progress.staleness_sum);
  message.merges_rate_bits = bits(status.merges_per_second);
  message.images_rate_bits = bits(status.images_per_second);
  message.read_faults = progress.read_faults;
  message.rows = status.workers.size();
  return message;
}

JobStatus job_of(const JobStatusMessage& message) {
  JobStatus status;
  MasterProgress& progress = status.progress;
  status.job = message.job;
  status.training = message.training;
  status.schedule = message.schedule;
  progress.training = (message.flags & kIsTraining) != 0;
  progress.paused = (message.flags & kIsPaused) != 0;
  status.store_away = (message.flags & kIsStoreAway) != 0;
  status.over = (message.flags & kIsOver) != 0;
  progress.iteration = message.iteration;
  status.max_iteration = message.max_iteration;
  progress.merges = message.merges;
  progress.contributions = message.contributions;
  progress.rejected = message.rejected;
  progress.discarded = message.discarded;
  progress.ignored = message.ignored;
  progress.samples = message.samples;
  progress.term = message.term;
  progress.workers_alive = message.workers_alive;
  status.workers_min = message.workers_min;
  progress.stage = static_cast<std::uint32_t>(message.stage);
  status.stages = message.stages;
  status.uptime_ms = message.uptime_ms;
  progress.last_loss = known_float(message.loss_bits);
  progress.accuracy = known_float(message.accuracy_bits);
  progress.test_loss = known_float(message.test_loss_bits);
  progress.staleness_sum = rate(message.staleness_sum_bits);
  status.merges_per_second = rate(message.merges_rate_bits);
  status.images_per_second = rate(message.images_rate_bits);
  progress.read_faults = message.read_faults;
  return status;
}

WorkerStatusMessage worker_message(const WorkerStatus& row) {
  WorkerStatusMessage message;
  message.worker = row.worker.value;
  message.name = clip_text(row.name);
  message.device = clip_text(row.device);
  message.gone_why = clip_text(row.gone_why);
  message.state = static_cast<std::uint32_t>(row.state);
  message.iteration = row.iteration;
  message.runs = row.runs;
  message.samples = row.samples;
  message.dropped = row.dropped;
  message.staleness = row.staleness;
  message.silent_ms = row.silent_ms;
  message.images_rate_bits = bits(row.images_per_second);
  message.bytes_rate_bits = bits(row.bytes_per_second);
  message.phases = row.phases;
  message.traffic = row.traffic;
  message.read_faults = row.read_faults;
  return message;
}

}  // namespace

StatusMessages to_messages(const JobStatus& status) {
  StatusMessages messages{job_message(status), {}};
  for (const WorkerStatus& row : status.workers) messages.workers.push_back(worker_message(row));
  return messages;
}

void StatusAssembly::begin(const JobStatusMessage& message) {
  status_ = job_of(message);
  rows_ = message.rows;
}

void StatusAssembly::add(const WorkerStatusMessage& message) {
  if (!status_ || status_->workers.size() == rows_) return;
  WorkerStatus& row = status_->workers.emplace_back();
  row.worker = {message.worker};
  row.name = message.name;
  row.device = message.device;
  row.gone_why = message.gone_why;
  const bool is_known = message.state <= static_cast<std::uint32_t>(WorkerState::kGone);
  row.state = is_known ? static_cast<WorkerState>(message.state) : WorkerState::kPreparing;
  row.iteration = message.iteration;
  row.runs = message.runs;
  row.samples = message.samples;
  row.dropped = message.dropped;
  row.staleness = message.staleness;
  row.silent_ms = message.silent_ms;
  row.images_per_second = rate(message.images_rate_bits);
  row.bytes_per_second = rate(message.bytes_rate_bits);
  row.phases = message.phases;
  row.traffic = message.traffic;
  row.read_faults = message.read_faults;
}

std::optional<JobStatus> StatusAssembly::take() {
  if (!status_ || status_->workers.size() < rows_) return std::nullopt;
  return std::exchange(status_, std::nullopt);
}

}  // namespace speedo
