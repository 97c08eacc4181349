// Replicated updates: the weights follow each merge when its step is published and told.

#include <speedo/base/assert.hpp>
#include <speedo/base/digest.hpp>
#include <speedo/base/limits.hpp>

#include "base/log.hpp"
#include "train/merge/merger_engine.hpp"
#include "train/replicas/factor_plan.hpp"

namespace speedo {

// Null: the stage's updates are not replicated.
std::unique_ptr<MergerReplica> MergerEngine::make_replica(const UpdateSpec& update) const {
  if (!update.replicated) return nullptr;
  SPEEDO_ASSERT(update.kind == UpdateKind::kGradientOnly && !config_.shared);
  const std::vector<FactorShape> factors =
      choose_factors(update, config_.factor_shapes, config_.expected_workers);
  SPEEDO_INFO("replicated updates, {}",
              describe_factors(layout_, factors, config_.expected_workers));
  const std::size_t parts = config_.step_parts ? config_.step_parts->parts() : 1;
  return std::make_unique<MergerReplica>(layout_, factors, parts, *backend_);
}

// Workers begin with weights and histories.
Result<void> MergerEngine::publish_first_replica(const Histories& histories, RecordInfo info) {
  fill_checkpoint(histories);
  SPEEDO_TRY(put(*store_, weights_key(), info, checkpoint_.values()));
  publication_.emplace(config_.platform->clock(), nullptr);
  publication_->published(info.version);
  check_.reset();
  return {};
}

RecordInfo MergerEngine::next_step() const {
  RecordInfo info = info_of(Version{version_.value + 1}, {});
  info.term = config_.term;
  return info;
}

// Of what is made ahead nothing is read while the step before is not applied: it has the room.
void MergerEngine::expect_in_parts(const MergeJob& job) {
  if (!settle()) return;
  config_.step_parts->expect(
      job, next_step(), [this](const StepHeader& header) { return replica_->room(header); });
}

// The step is made by the parts' mergers, and read here.
Result<MergeResult> MergerEngine::merge_in_parts(const MergeJob& job) {
  auto made = config_.step_parts->merge(
      job, next_step(), [this](const StepHeader& header) { return replica_->room(header); });
  config_.step_parts->forget();
  SPEEDO_ASSIGN(MergeResult result, std::move(made));
  begun_ahead_ = result.begun_ahead;
  if (result.version != version_) advance(job);
  SPEEDO_ASSERT(result.version == version_);
  // A store that lost a contribution may have lost the weights, too.
  if (!result.rejected.empty()) SPEEDO_TRY(restore_lost_weights());
  return result;
}

// Makes the weights those of version_. Error: kNotFinite, again and again.
Result<void> MergerEngine::settle() {
  if (!replica_ || !replica_->is_pending()) return {};
  SPEEDO_TRY(replica_->apply(*rule_, record_.values(), record_.next(version_.value)));
  record_.advance();
  if (version_.value % kReplicaCheckInterval == 0) {
    check_ = WeightsCheck{version_, checksum_of(std::as_bytes(record_.values()))};
  }
  return {};
}

// What readers of the whole weights are given. Requires: settled, and no publication under way.
std::span<const float> MergerEngine::published_values() {
  if (!replica_) return record_.values();
  fill_checkpoint();
  return checkpoint_.values();
}

}  // namespace speedo
