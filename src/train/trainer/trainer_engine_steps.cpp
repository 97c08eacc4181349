// The steps of a run that are looked at: their losses are waited for, and the last one's buckets go
// out while others are still being computed.

#include <cmath>
#include <limits>

#include "base/log.hpp"
#include "train/trainer/buckets_ahead.hpp"
#include "train/trainer/trainer_engine.hpp"

namespace speedo {

Result<float> TrainerEngine::compute_step(const TrainMessage& order, std::uint32_t step) {
  is_finite_ = true;
  Learner::Hooks hooks;
  hooks.weights_needed = need_weights(step);
  SPEEDO_ASSIGN(const float loss, learner_->accumulate_gradients(passes_of(order), hooks));
  if (std::isfinite(loss)) step_on({0, learner_->layout().element_count()}, order, step);
  if (!is_finite_) return std::numeric_limits<float>::quiet_NaN();
  if (rule_in_use() && std::isfinite(loss)) ++updates_held_;
  return loss;
}

// The last step's buckets go out as they become final, unless its rule has to see all of them
// first. From a device that is not the host they are copied while it goes on: what is queued behind
// them never waits for the host.
Result<float> TrainerEngine::compute_last_step(const TrainMessage& order, std::uint64_t base) {
  const std::uint32_t step = spec().steps_per_run - 1;
  is_finite_ = true;
  const bool waits = rule_in_use() && rule_->needs_whole_gradient();
  bool is_ahead = false;
  Learner::Hooks hooks;
  hooks.weights_needed = need_weights(step);
  hooks.last_backward = [&] {
    begin_contribution(order, base);
    is_ahead = !waits && goes_ahead();
  };
  const auto take = [&](const Bucket& bucket) {
    if (is_ahead) return step_ahead(bucket, order, step);
    step_on(bucket, order, step);
    if (is_finite_) update_->add(bucket);
  };
  if (!waits) {
    hooks.gradient_ready = [&](const Bucket& bucket, const StreamEvent& final) {
      if (!is_ahead) learner_->backend().device().wait(final);
      if (is_finite_) take(bucket);
    };
  }
  auto loss = learner_->accumulate_gradients(passes_of(order), hooks);
  if (loss && waits && std::isfinite(*loss)) take({0, learner_->layout().element_count()});
  if (!loss && is_ahead) {
    ahead_->drop();
    if (rule_in_use()) forget_histories("a step broke off");
  }
  if (!loss) return loss;
  if (is_ahead) pass_on(true);
  if (is_finite_) {
    if (rule_in_use() && std::isfinite(*loss)) ++updates_held_;
    return loss;
  }
  if (!waits && rule_in_use()) forget_histories("a step broke off whose gradient is not finite");
  return std::numeric_limits<float>::quiet_NaN();
}

bool TrainerEngine::goes_ahead() {
  Arena* const arena = update_->formed_of();
  if (host_->is_direct() || arena == nullptr || !may_go_ahead_) return false;
  if (ahead_ == nullptr) {
    const ParameterLayout& layout = learner_->layout();
    auto made = BucketsAhead::create(learner_->backend(), *host_, layout.element_count(),
                                     std::ssize(layout.slots()));
    may_go_ahead_ = made.has_value();
    if (!made) {
      SPEEDO_WARN("the device waits while its gradients are copied: {}", made.error().message);
      return false;
    }
    ahead_ = std::move(*made);
  }
  return ahead_->begin(*arena);
}

// Whether the gradients were finite is known when they have come.
void TrainerEngine::step_ahead(const Bucket& bucket, const TrainMessage& order,
                               std::uint32_t step) {
  const Instant start = platform_.clock().now();
  ahead_->look_at(bucket, learner_->gradients().data() + bucket.offset);
  update(bucket, order, step);
  ahead_->fetch();
  learner_->has_updated(platform_.clock().now() - start);
  pass_on(false);
}

void TrainerEngine::pass_on(bool waits) {
  ahead_->pass_on(waits, [this](const Bucket& bucket, bool is_finite) {
    if (!is_finite_) return;
    if (is_finite) return update_->add(bucket);
    note_not_finite(bucket);
  });
}

void TrainerEngine::note_not_finite(const Bucket& bucket) {
  is_finite_ = false;
  fault_ = learner_->find_non_finite_gradients(bucket);
}

void TrainerEngine::step_on(const Bucket& bucket, const TrainMessage& order, std::uint32_t step) {
  const Instant start = platform_.clock().now();
  bool is_finite = true;
  update_->for_counting(bucket, [&](const Bucket& part) {
    is_finite = is_finite && learner_->backend().all_finite(
                                 part.count, learner_->gradients().data() + part.offset);
  });
  if (!is_finite) return note_not_finite(bucket);
  update(bucket, order, step);
  learner_->has_updated(platform_.clock().now() - start);
}

// Several shards make one larger batch: the sum of their gradients is brought to the size of one's.
void TrainerEngine::update(const Bucket& bucket, const TrainMessage& order, std::uint32_t step) {
  float* const part = learner_->gradients().data() + bucket.offset;
  if (order.shards > 1) {
    const float mean = 1.0F / static_cast<float>(order.shards);
    learner_->backend().axpby(bucket.count, mean, part, 0.0F, part);
  }
  if (rule_in_use()) apply_rule(bucket, order, step);
}

void TrainerEngine::apply_rule(const Bucket& bucket, const TrainMessage& order,
                               std::uint32_t step) {
  float* const gradients = learner_->gradients().data();
  const auto iteration = static_cast<std::int64_t>(order.iteration + step);
  rule_->set_updates_held(updates_held_);
  const bool is_last = step + 1 == spec().steps_per_run;
  if (!is_last || update_->applies_last_update()) {
    rule_->update(iteration, bucket, learner_->weights().data(), gradients);
  } else {
    rule_->compute_delta(iteration, bucket, learner_->weights_read(), gradients);
  }
}

}  // namespace speedo
