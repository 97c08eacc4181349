#include "train/session/stage_switch.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {

StageSwitch::StageSwitch(const std::vector<Schedule>& stages, std::uint64_t iteration)
    : stages_(stages) {
  SPEEDO_ASSERT(!stages.empty());
  leave_stages_that_are_over(iteration);
}

std::uint64_t StageSwitch::cycle_of(const std::vector<Schedule>& stages) {
  std::uint64_t sum = 0;
  for (const Schedule& stage : stages) {
    if (stage.iterations == 0) return 0;
    sum += stage.iterations;
  }
  return sum;
}

bool StageSwitch::restore(std::uint64_t number, std::uint64_t start, std::uint64_t iteration) {
  SPEEDO_ASSERT(is_training());
  SPEEDO_ASSERT(start <= iteration);
  number_ = number;
  start_ = start;
  if (!is_over(iteration)) return false;
  leave_stages_that_are_over(iteration);
  return true;
}

// Whole cycles in one step: a damaged state may have any iteration.
void StageSwitch::leave_stages_that_are_over(std::uint64_t iteration) {
  SPEEDO_ASSERT(iteration >= start_);
  if (const std::uint64_t cycle = cycle_of(stages_); cycle > 0) {
    const std::uint64_t cycles = (iteration - start_) / cycle;
    number_ += cycles * stages_.size();
    start_ += cycles * cycle;
  }
  while (is_over(iteration)) {
    start_ += schedule().iterations;
    number_ += 1;
  }
}

// The last iteration of a stage is still its own.
const Schedule& StageSwitch::schedule_of(std::uint64_t iteration) const {
  SPEEDO_ASSERT(iteration >= start_);
  if (iteration == start_) return stages_[number_ == 0 ? 0 : (number_ - 1) % stages_.size()];
  StageSwitch later = *this;
  later.leave_stages_that_are_over(iteration - 1);
  return later.schedule();
}

bool StageSwitch::trains_in_rounds() const {
  const StrategyEntry* entry = find_strategy(schedule().strategy.name);
  return entry != nullptr && entry->rounds;
}

float StageSwitch::rate_scale(std::uint64_t iteration, std::uint64_t workers) const {
  SPEEDO_ASSERT(iteration >= start_);
  return lr_scale(schedule(), iteration - start_, std::max<std::uint64_t>(workers, 1));
}

bool StageSwitch::is_over(std::uint64_t iteration) const {
  SPEEDO_ASSERT(iteration >= start_);
  const std::uint64_t iterations = schedule().iterations;
  return iterations != 0 && iteration - start_ >= iterations;
}

void StageSwitch::drain(std::uint64_t iteration) {
  SPEEDO_ASSERT(is_training());
  SPEEDO_ASSERT(is_over(iteration));
  step_ = Step::kDraining;
}

std::uint64_t StageSwitch::enter(std::uint64_t iteration) {
  SPEEDO_ASSERT(is_draining());
  SPEEDO_ASSERT(is_over(iteration));
  step_ = Step::kEntering;
  const std::uint64_t first = number_ + 1;
  leave_stages_that_are_over(iteration);
  return number_ - first;
}

void StageSwitch::entered() {
  SPEEDO_ASSERT(is_entering());
  step_ = Step::kTraining;
}

void StageSwitch::show(MasterProgress& progress) const {
  progress.stage = index();
  progress.stage_start = start_;
}

}  // namespace speedo
