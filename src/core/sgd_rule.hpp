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

  void compute_update(std::int64_t iteration, const float* weights, float* gradients) override;
  void update(std::int64_t iteration, float* weights, float* gradients) override;
  std::vector<Arena*> histories() override { return {&history_}; }

 private:
  SgdRule(const caffe::SolverParameter& solver, const ParameterLayout& layout, Backend& backend,
          Arena history);

  Arena history_;
};

}  // namespace speedo
