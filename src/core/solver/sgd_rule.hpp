#pragma once

#include <memory>
#include <vector>

#include <speedo/core/update_rule.hpp>

namespace speedo {

// Momentum SGD, Caffe's form: h = momentum h + rate g; update = h. The rate is inside the history,
// so a change of rate acts at once only on new gradients. History: one block, h.
class SgdRule final : public UpdateRule {
 public:
  static Result<std::unique_ptr<UpdateRule>> create(const caffe::SolverParameter& solver,
                                                    const ParameterLayout& layout,
                                                    Backend& backend);

  std::vector<Arena*> histories() override { return {&history_}; }
  bool can_be_guarded() const override { return true; }

 private:
  void compute_parts(const SgdStep& step, Parts parts, const float* weights,
                     float* gradients) override;
  void update_parts(const SgdStep& step, Parts parts, float* weights, float* gradients) override;
  SgdRule(const caffe::SolverParameter& solver, const ParameterLayout& layout, Backend& backend,
          Arena history);

  Arena history_;
};

}  // namespace speedo
