#include "checkpoint/train_checkpoints.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>

#include "base/log.hpp"
#include "base/random_bits.hpp"
#include "base/write_fault.hpp"
#include "checkpoint/training_file.hpp"

namespace speedo {

namespace {

constexpr std::chrono::seconds kRetryInterval{30};
constexpr std::chrono::milliseconds kPollInterval{100};

void wait_for_room(const std::function<bool()>& is_stopping) {
  const Instant end = steady_clock().now() + kRetryInterval;
  while (!is_stopping() && steady_clock().now() < end) {
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace

TrainCheckpoints::TrainCheckpoints(const caffe::SolverParameter& solver, RotationRules rules,
                                   std::function<bool()> is_stopping)
    : solver_(solver), rules_(rules), is_stopping_(std::move(is_stopping)) {}

Result<void> TrainCheckpoints::check_writable() const {
  return SnapshotWriter(solver_).check_writable();
}

void TrainCheckpoints::set_owner(CheckpointOwner owner) {
  owner_ = std::move(owner);
  writer_.emplace(solver_, owner_.job, rules_);
}

Result<std::optional<SavedCheckpoint>> TrainCheckpoints::find(const std::string& resume) const {
  SPEEDO_ASSERT(writer_.has_value());
  if (resume == kResumeNewest) {
    const std::string& prefix = solver_.snapshot_prefix();
    return newest_checkpoint(prefix, owner_,
                             read_training_file(training_file(prefix, owner_.job)));
  }
  SPEEDO_ASSIGN(SavedCheckpoint saved, load_checkpoint(resume, owner_));
  return std::optional(std::move(saved));
}

Result<void> TrainCheckpoints::begin(TrainingId training, std::uint64_t steps_ahead) {
  SPEEDO_ASSERT(writer_.has_value());
  steps_ahead_ = steps_ahead;
  while (!training.is_known()) training = {random_bits(), random_bits()};
  return writer_->begin(training);
}

Result<void> TrainCheckpoints::write(std::int64_t iteration, const caffe::NetParameter& model,
                                     caffe::SolverState& state) {
  SPEEDO_ASSERT(writer_.has_value());
  const std::string session;  // Only a cluster has one.
  SnapshotParts parts{iteration, model, state, session, owner_.model};
  parts.data_step = static_cast<std::uint64_t>(iteration) + steps_ahead_;
  while (true) {
    const bool stopping = is_stopping_();
    Result<void> written = writer_->write_or_rescue(parts);
    if (written || written.error().code != ErrorCode::kCannotWrite) return written;
    if (iteration < solver_.max_iter() && !stopping) {
      SPEEDO_WARN("The snapshot of iteration {} failed: {}", iteration, written.error().message);
      failed_iteration_ = iteration;
      failure_ = std::move(written).error();
      return {};
    }
    if (stopping || !waiting_may_help(written.error())) return written;
    SPEEDO_WARN(
        "The last snapshot cannot be written: {}; trying again in {} s, until there is "
        "room or a signal asks to stop",
        written.error().message, kRetryInterval.count());
    wait_for_room(is_stopping_);
  }
}

bool TrainCheckpoints::look_at_tests(const Solver& solver) {
  if (solver.tested_iteration() == tested_iteration_ || solver.last_scores().empty()) {
    return false;
  }
  tested_iteration_ = solver.tested_iteration();
  writer_->on_tested(static_cast<std::uint64_t>(tested_iteration_), solver.last_scores().front());
  return true;
}

std::optional<Error> TrainCheckpoints::failure_at(std::int64_t iteration) const {
  return failed_iteration_ == iteration ? failure_ : std::nullopt;
}

std::string TrainCheckpoints::last_model() const { return writer_ ? writer_->last_model() : ""; }

std::optional<std::int64_t> seed_of_newest(const std::string& prefix, const std::string& job) {
  const auto newest = newest_record(prefix, job);
  if (!newest || !newest->record.has_random_seed()) return std::nullopt;
  return newest->record.random_seed();
}

std::optional<std::int64_t> seed_of_record(const std::string& record_file) {
  const auto record = read_record(record_file);
  if (!record || !record->has_random_seed()) return std::nullopt;
  return record->random_seed();
}

}  // namespace speedo
