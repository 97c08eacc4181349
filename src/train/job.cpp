#include <speedo/train/trainer.hpp>

#include "speedo.pb.h"

namespace speedo {

std::string encode(const JobSpec& job) {
  record::Job message;
  message.set_solver_text(job.solver_text);
  message.set_base(job.base);
  message.set_update(static_cast<std::uint32_t>(job.update));
  message.set_steps_per_run(job.steps_per_run);
  message.set_offset_shards(job.offset_shards);
  message.set_expected_workers(job.expected_workers);
  return message.SerializeAsString();
}

Result<JobSpec> decode_job(const std::string& bytes) {
  record::Job message;
  if (!message.ParseFromString(bytes) || !message.has_solver_text()) {
    return Error{ErrorCode::kCorrupt,
                 "job in the store: not a job description; start the master again"};
  }
  const bool known = message.update() <= static_cast<std::uint32_t>(UpdateKind::kGradientOnly);
  if (!known || message.steps_per_run() == 0 || message.expected_workers() == 0) {
    return Error{ErrorCode::kMismatch,
                 "job in the store: made by another version of speedo-master; use the same version "
                 "for master and workers"};
  }
  return JobSpec{.solver_text = message.solver_text(),
                 .base = message.base(),
                 .update = static_cast<UpdateKind>(message.update()),
                 .steps_per_run = message.steps_per_run(),
                 .offset_shards = message.offset_shards(),
                 .expected_workers = message.expected_workers()};
}

}  // namespace speedo
