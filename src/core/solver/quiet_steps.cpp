#include "core/solver/quiet_steps.hpp"

#include <chrono>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/core/net.hpp>
#include <speedo/core/update_rule.hpp>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "core/kept_values.hpp"

namespace speedo {
namespace {

// Who watches a training learns of its losses that soon.
constexpr std::chrono::milliseconds kReadsEvery{500};

std::string obstacle_of(const QuietSteps::Parts& parts) {
  if (parts.rule.needs_whole_gradient()) return "clip_gradients logs the norm of every gradient";
  if (!parts.rule.can_be_guarded()) return "the solver's rule changes its histories in any case";
  return parts.net.queue_obstacle();
}

}  // namespace

Result<std::unique_ptr<QuietSteps>> QuietSteps::create(const Parts& parts) {
  SPEEDO_ASSIGN(std::unique_ptr<DeviceSteps> steps, parts.net.backend().make_device_steps());
  if (steps == nullptr) return std::unique_ptr<QuietSteps>();
  if (const std::string obstacle = obstacle_of(parts); !obstacle.empty()) {
    SPEEDO_DEBUG("Every iteration waits for its loss: {}", obstacle);
    return std::unique_ptr<QuietSteps>();
  }
  SPEEDO_TRY(parts.kept.guard(*steps));
  return std::unique_ptr<QuietSteps>(new QuietSteps(parts, std::move(steps)));
}

QuietSteps::QuietSteps(const Parts& parts, std::unique_ptr<DeviceSteps> steps)
    : parts_(parts), steps_(std::move(steps)), read_at_(steady_clock().now()) {
  std::string obstacle = parts_.net.recording_obstacle();
  if (parts_.passes > 1) obstacle = "iter_size is more than 1";
  if (!steps_->can_record()) obstacle = "they are switched off";
  if (!obstacle.empty()) give_up_recording(obstacle);
}

QuietSteps::~QuietSteps() { parts_.kept.end_guard(); }

void QuietSteps::give_up_recording(const std::string& why) {
  recording_ = Recording::kCannotBe;
  SPEEDO_DEBUG("No CUDA graph of the training step: {}", why);
}

bool QuietSteps::is_due() const {
  return pending_ == DeviceSteps::kStepsMax || steady_clock().now() - read_at_ > kReadsEvery;
}

std::vector<float> QuietSteps::read() {
  pending_ = 0;
  std::vector<float> losses = steps_->read();
  read_at_ = steady_clock().now();
  return losses;
}

Result<void> QuietSteps::queue(std::int64_t iteration) {
  SPEEDO_ASSERT(pending_ < DeviceSteps::kStepsMax);
  const TraceSpan span("queue step");
  steps_->set_rate(parts_.rule.rate(iteration));
  SPEEDO_TRY(parts_.net.queue_sources(*steps_));
  switch (recording_) {
    case Recording::kWarmsUp:
      SPEEDO_TRY(queue_rest());
      recording_ = Recording::kIsDue;
      break;
    case Recording::kIsDue:
      SPEEDO_TRY(record());
      break;
    case Recording::kIsThere:
      SPEEDO_TRY(replay());
      break;
    case Recording::kCannotBe:
      SPEEDO_TRY(queue_rest());
      break;
  }
  ++pending_;
  return {};
}

// All but what reads the first pass' data.
Result<void> QuietSteps::queue_rest() {
  Net& net = parts_.net;
  parts_.kept.keep();
  net.clear_gradients();
  for (int pass = 0; pass < parts_.passes; ++pass) {
    if (pass > 0) {
      steps_->next_pass();
      SPEEDO_TRY(net.queue_sources(*steps_));
    }
    SPEEDO_TRY(net.queue_forward(*steps_));
    net.queue_backward(*steps_);
  }
  net.unscale_gradients();
  const std::int64_t count = net.layout().element_count();
  steps_->end_step(count, net.gradients().data(), parts_.passes);
  parts_.rule.update_guarded(steps_->guard(), net.weights().data(), net.gradients().data());
  return {};
}

// Random numbers that operations do not get as they are drawn could not be renewed.
Result<void> QuietSteps::record() {
  const Random before = parts_.net.pass_random();
  recorded_scale_ = parts_.net.gradient_scale();
  steps_->begin_recording();
  const Result<void> queued = queue_rest();
  DeviceSteps::Recorded recorded = steps_->end_recording();
  SPEEDO_TRY(queued);
  numbers_ = steps_->recorded_numbers();
  Random random = before;
  for (const std::uint64_t number : numbers_) {
    if (recorded.obstacle.empty() && random.next() != number) {
      recorded.obstacle = "random numbers are not used as they are drawn";
    }
  }
  if (recorded.obstacle.empty()) {
    recording_ = Recording::kIsThere;
    SPEEDO_DEBUG("Training steps between two looks are replayed as one CUDA graph");
  } else {
    give_up_recording(recorded.obstacle);
  }
  if (recorded.is_done) return {};
  parts_.net.set_pass_random(before);
  return queue_rest();
}

// Where memory has gone since it was recorded, others may have it. What is scaled otherwise is
// recorded anew as well.
Result<void> QuietSteps::replay() {
  Random random = parts_.net.pass_random();
  for (std::uint64_t& number : numbers_) number = random.next();
  const bool is_current = parts_.net.gradient_scale() == recorded_scale_;
  if (is_current && steps_->replay(numbers_)) return {};
  recording_ = Recording::kIsDue;
  return queue_rest();
}

}  // namespace speedo
