#include "train/session/stage_switch.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {

StageSwitch::StageSwitch(const std::vector<Schedule>& stages, std::uint64_t iteration)
    : stages_(stages) {
  SPEEDO_ASSERT(!stages.empty());
  if (const std::uint64_t cycle = cycle_of(stages); cycle > 0) {
    number_ = iteration / cycle * stages.size();
    start_ = iteration / cycle * cycle;
  }
  while (is_over(iteration)) {
    start_ += schedule().iterations;
    number_ += 1;
  }
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
  number_ += 1;
  start_ = iteration;
  return true;
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

void StageSwitch::enter(std::uint64_t iteration) {
  SPEEDO_ASSERT(is_draining());
  step_ = Step::kEntering;
  number_ += 1;
  start_ = iteration;
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
