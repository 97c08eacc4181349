#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <speedo/backend/update_step.hpp>
#include <speedo/core/update_rule.hpp>

namespace speedo {

// AdaGrad, RMSProp, AdaDelta and Adam, Caffe's forms; their formulas are in
// backend/update_step.hpp. Histories: one block, or first and second.
class AdaptiveRule final : public UpdateRule {
 public:
  static Result<std::unique_ptr<UpdateRule>> create(const caffe::SolverParameter& solver,
                                                    const ParameterLayout& layout,
                                                    Backend& backend);
  // Of a solver of one of these types. Error: kConfig for a field that its formula cannot use.
  static Result<void> check_fields(const caffe::SolverParameter& solver);

  std::vector<Arena*> histories() override;
  bool can_be_guarded() const override { return true; }

 private:
  AdaptiveRule(const caffe::SolverParameter& solver, const ParameterLayout& layout,
               Backend& backend, AdaptiveKind kind);
  void compute_parts(const SgdStep& step, Parts parts, const float* weights,
                     float* gradients) override;
  void update_parts(const SgdStep& step, Parts parts, float* weights, float* gradients) override;
  float rate_correction(std::int64_t updates) const override;
  AdaptiveStep adaptive(const SgdStep& step) const;
  AdaptiveHistories both_histories();

  const AdaptiveKind kind_;
  Arena first_, second_;  // the second is empty where the rule has one history
};

}  // namespace speedo
