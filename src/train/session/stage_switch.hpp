#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/train/master_session.hpp>

namespace speedo {

// Which stage of the job trains, and the way from one stage to the next: when its iterations are
// merged no new run starts and those under way are waited for (draining); then the shell makes
// ready for the next stage (entering). What is merged while a stage drains is of the stages after
// it, which begin later for it and end no later; one of which nothing is left is left out.
//
// Invariant: a stage starts where the one before it should have ended, so that the stage follows
// from the iteration alone. One that trains has iterations left.
// Invariant: a stage that trains or drains has start() <= the iteration.
// Thread safety: one thread.
class StageSwitch {
 public:
  enum class Step { kTraining, kDraining, kEntering };

  // Iterations until the stages begin anew; 0: they never do.
  static std::uint64_t cycle_of(const std::vector<Schedule>& stages);

  // Stages follow each other, and are repeated; `stages` outlives it, at least one. A training that
  // begins at an iteration above 0 has the stages of those before behind it.
  StageSwitch(const std::vector<Schedule>& stages, std::uint64_t iteration);
  // Goes on in the stage of this number, which starts at `start`, or in the next one that has
  // iterations left if it has none: then nothing is left to drain. Whether it is another one.
  bool restore(std::uint64_t number, std::uint64_t start, std::uint64_t iteration);

  std::uint64_t number() const { return number_; }  // counted on when stages repeat
  std::uint32_t index() const { return static_cast<std::uint32_t>(number_ % stages_.size()); }
  std::uint64_t start() const { return start_; }
  const Schedule& schedule() const { return stages_[index()]; }
  std::uint64_t count() const { return stages_.size(); }
  // Of the stage that an iteration belongs to which the stage that trains or drains has merged:
  // its own, or one of the stages after it. The one at start() ended the stage before; if there is
  // none, it is of the first. Requires: iteration >= start().
  const Schedule& schedule_of(std::uint64_t iteration) const;
  bool trains_in_rounds() const;
  // The factor on the learning rate.
  float rate_scale(std::uint64_t iteration, std::uint64_t workers) const;

  bool is_training() const { return step_ == Step::kTraining; }
  bool is_draining() const { return step_ == Step::kDraining; }
  bool is_entering() const { return step_ == Step::kEntering; }
  // The iterations of the stage are merged.
  bool is_over(std::uint64_t iteration) const;
  void drain(std::uint64_t iteration);  // requires: training, and over
  // How many stages are left out. Requires: draining.
  std::uint64_t enter(std::uint64_t iteration);
  void entered();  // or failed; requires: entering

  void show(MasterProgress& progress) const;

 private:
  void leave_stages_that_are_over(std::uint64_t iteration);

  const std::vector<Schedule>& stages_;
  std::uint64_t number_ = 0;
  std::uint64_t start_ = 0;
  Step step_ = Step::kTraining;
};

}  // namespace speedo
