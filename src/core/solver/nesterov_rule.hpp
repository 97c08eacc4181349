#pragma once

#include <memory>
#include <vector>

#include <speedo/core/update_rule.hpp>

namespace speedo {

// Nesterov's accelerated gradient, Caffe's form: with h' = momentum h + rate g the update is
// (1 + momentum) h' - momentum h. History: one block, h.
class NesterovRule final : public UpdateRule {
 public:
  static Result<std::unique_ptr<UpdateRule>> create(const caffe::SolverParameter& solver,
                                                    const ParameterLayout& layout,
                                                    Backend& backend);

  std::vector<Arena*> histories() override { return {&history_}; }

 private:
  void compute_parts(const SgdStep& step, Parts parts, const float* weights,
                     float* gradients) override;
  NesterovRule(const caffe::SolverParameter& solver, const ParameterLayout& layout,
               Backend& backend, Arena history, Arena before);

  Arena history_;
  Arena before_;  // one part's history before the step
};

}  // namespace speedo
