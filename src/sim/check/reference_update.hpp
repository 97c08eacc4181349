#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <speedo/train/merger.hpp>
#include <speedo/train/update.hpp>

namespace speedo::sim {

// What a merge makes of the weights, by the formulas of update.hpp, in double and in the order of
// the job; shares no code with the merger.
class ReferenceUpdate {
 public:
  struct Rule {
    float learning_rate = 0.0F, momentum = 0.0F;  // of the master's solver
  };
  ReferenceUpdate(std::vector<UpdateSpec> stages, Rule rule)
      : stages_(std::move(stages)), rule_(rule) {}

  const UpdateSpec& stage(std::size_t index) const { return stages_[index]; }

  using Values = std::vector<float>;
  struct Contribution {
    const Values& values;
    float weight = 0.0F, share = 0.0F;  // as MergeJob::Contribution
  };
  // Does what the job's stage does with these of its contributions. Histories: of the rule, or the
  // averages' (UpdaterState::kAverage); none yet: zeros.
  void apply(Values& weights, std::vector<Values>& histories, const MergeJob& job,
             std::span<const Contribution> contributions) const;

 private:
  using Sum = std::vector<double>;

  Sum sum_of(const Values& record, const MergeJob& job,
             std::span<const Contribution> contributions) const;
  void apply_rule(Values& weights, std::vector<Values>& histories, const MergeJob& job,
                  const Sum& gradient) const;

  std::vector<UpdateSpec> stages_;
  Rule rule_;
};

}  // namespace speedo::sim
