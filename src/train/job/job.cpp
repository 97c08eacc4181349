#include <speedo/train/trainer.hpp>
#include <speedo/store/layout.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "speedo.pb.h"

namespace speedo {
namespace {

void encode(const UpdateSpec& update, record::Update& message) {
  message.set_kind(static_cast<std::uint32_t>(update.kind));
  message.set_steps_per_run(update.steps_per_run);
  message.set_moving_rate(update.moving_rate);
  message.set_updater(static_cast<std::uint32_t>(update.updater));
  message.set_factor(update.factor);
  message.set_skip(update.skip);
  message.set_codec(static_cast<std::uint32_t>(update.codec.kind));
  message.set_threshold(update.codec.threshold);
  message.set_percent(update.codec.percent);
  message.set_error_feedback(update.error_feedback);
  message.set_replicated(update.replicated);
  message.set_factors(update.factors);
  message.set_in_rounds(update.in_rounds);
  if (update.base_lr) message.set_base_lr(*update.base_lr);
  if (update.momentum) message.set_momentum(*update.momentum);
  if (update.weight_decay) message.set_weight_decay(*update.weight_decay);
}

CodecSpec codec_of(const record::Update& message) {
  return {.kind = codec_kind(message.codec()).value_or(CodecKind::kNone),
          .threshold = message.threshold(),
          .percent = message.percent()};
}

bool are_finite(const record::Update& message) {
  const float numbers[] = {message.moving_rate(), message.factor(),   message.skip(),
                           message.base_lr(),     message.momentum(), message.weight_decay()};
  return std::all_of(std::begin(numbers), std::end(numbers),
                     [](float number) { return std::isfinite(number); });
}

bool is_known(const record::Update& message) {
  return message.kind() <= static_cast<std::uint32_t>(UpdateKind::kElasticMaster) &&
         message.updater() <= static_cast<std::uint32_t>(UpdaterState::kReset) &&
         message.steps_per_run() > 0 && are_finite(message) &&
         codec_kind(message.codec()) && is_codec_sound(codec_of(message));
}

UpdateSpec decode(const record::Update& message) {
  UpdateSpec update;
  update.kind = static_cast<UpdateKind>(message.kind());
  update.steps_per_run = message.steps_per_run();
  update.moving_rate = message.moving_rate();
  update.updater = static_cast<UpdaterState>(message.updater());
  update.factor = message.factor();
  update.skip = message.skip();
  update.codec = codec_of(message);
  update.error_feedback = message.error_feedback();
  update.replicated = message.replicated();
  update.factors = message.factors();
  update.in_rounds = message.in_rounds();
  if (message.has_base_lr()) update.base_lr = message.base_lr();
  if (message.has_momentum()) update.momentum = message.momentum();
  if (message.has_weight_decay()) update.weight_decay = message.weight_decay();
  return update;
}

}  // namespace

std::string encode(const JobSpec& job) {
  record::Job message;
  message.set_solver_text(job.solver_text);
  message.set_base(job.base);
  for (const UpdateSpec& stage : job.stages) encode(stage, *message.add_stage());
  message.set_offset_shards(job.offset_shards);
  message.set_expected_workers(job.expected_workers);
  message.set_step_parts(job.step_parts);
  message.set_deterministic(job.deterministic);
  message.set_snapshot_workers(job.snapshot_workers);
  return message.SerializeAsString();
}

Result<JobSpec> decode_job(const std::string& bytes) {
  record::Job message;
  if (!message.ParseFromString(bytes) || !message.has_solver_text()) {
    return Error{ErrorCode::kCorrupt,
                 "job in the store: not a job description; start the master again"};
  }
  JobSpec job{.solver_text = message.solver_text(),
              .base = message.base(),
              .stages = {},
              .offset_shards = message.offset_shards(),
              .expected_workers = message.expected_workers(),
              .deterministic = message.deterministic(),
              .step_parts = message.step_parts(),
              .snapshot_workers = message.snapshot_workers()};
  bool known = job.expected_workers > 0 && message.stage_size() > 0 && job.step_parts > 0 &&
               job.step_parts <= kRecordServersMax;
  for (const record::Update& stage : message.stage()) {
    known = known && is_known(stage);
    job.stages.push_back(decode(stage));
  }
  if (!known) {
    return Error{ErrorCode::kMismatch,
                 "job in the store: made by another version of speedo-master; use the same version "
                 "for master and workers"};
  }
  return job;
}

}  // namespace speedo
