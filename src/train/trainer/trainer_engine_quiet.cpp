// Steps of a run whose losses stay on the device. The first one waits for weights, the last one's
// buckets go out while others are computed: those are looked at.

#include <cmath>
#include <vector>

#include <speedo/base/assert.hpp>

#include "core/solver/quiet_steps.hpp"
#include "train/trainer/trainer_engine.hpp"

namespace speedo {

// Only whose gradient needs no bringing to the size of one shard's.
Result<void> TrainerEngine::make_quiet_steps(const TrainMessage& order) {
  loud_step_ = 0;
  constexpr std::uint32_t kLookedAt = 2;
  is_run_quiet_ = rule_in_use() && order.shards == 1 && spec().steps_per_run > kLookedAt;
  if (!is_run_quiet_ || quiet_ != nullptr || !may_be_quiet_) return {};
  SPEEDO_ASSIGN(quiet_, learner_->make_quiet_steps(*rule_, passes_of(order)));
  may_be_quiet_ = quiet_ != nullptr;
  return {};
}

bool TrainerEngine::is_quiet(std::uint32_t step) const {
  return is_run_quiet_ && quiet_ != nullptr && step > 0 && step + 1 < spec().steps_per_run &&
         step != loud_step_;
}

Result<void> TrainerEngine::queue_step(const TrainMessage& order, std::uint32_t step) {
  rule_->set_updates_held(updates_held_ + quiet_->pending());
  // Others see that the net is at work, also where its layers are not called one by one.
  progress_.fetch_add(1, std::memory_order_relaxed);
  SPEEDO_TRY(quiet_->queue(static_cast<std::int64_t>(order.iteration + step)));
  learner_->has_passed_quietly(passes_of(order));
  return {};
}

// Takes note of the losses of the quiet steps before `step`. The step to go on with: that one, or
// the first whose loss was not finite, which is to be run again, aloud.
std::uint32_t TrainerEngine::settle_steps(const TrainMessage& order, std::uint32_t step,
                                          double& loss_sum) {
  if (quiet_ == nullptr || quiet_->pending() == 0) return step;
  auto next = step - static_cast<std::uint32_t>(quiet_->pending());
  for (const float loss : quiet_->read()) {
    if (!std::isfinite(loss)) break;
    loss_sum += static_cast<double>(loss);
    ++updates_held_;
    ++next;
  }
  if (next == step) return step;
  learner_->restore_step_statistics();
  const auto done = std::uint64_t{next} * static_cast<std::uint64_t>(passes_of(order));
  BatchSpan span = batch_span(order);
  span.first += done;
  span.count -= done;
  learner_->set_batch_span(span);
  loud_step_ = next;
  return next;
}

}  // namespace speedo
