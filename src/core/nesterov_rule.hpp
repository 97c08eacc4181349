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

  void compute_update(std::int64_t iteration, const float* weights, float* gradients) override;
  std::vector<Arena*> histories() override { return {&history_}; }

 private:
  NesterovRule(const caffe::SolverParameter& solver, const ParameterLayout& layout,
               Backend& backend, Arena history, Arena before);

  Arena history_;
  Arena before_;  // one parameter's history before the step
};

}  // namespace speedo
