#include "core/solver/sgd_rule.hpp"

#include <utility>

#include <speedo/backend/backend.hpp>

namespace speedo {

Result<std::unique_ptr<UpdateRule>> SgdRule::create(const caffe::SolverParameter& solver,
                                                    const ParameterLayout& layout,
                                                    Backend& backend) {
  SPEEDO_ASSIGN(Arena history, Arena::create(backend, layout.element_count()));
  return std::unique_ptr<UpdateRule>(new SgdRule(solver, layout, backend, std::move(history)));
}

SgdRule::SgdRule(const caffe::SolverParameter& solver, const ParameterLayout& layout,
                 Backend& backend, Arena history)
    : UpdateRule(solver, layout, backend), history_(std::move(history)) {}

void SgdRule::compute_parts(const SgdStep& step, Parts parts, const float* weights,
                            float* gradients) {
  backend().sgd_update_ranges(parts, step, weights, history_.data(), gradients);
}

void SgdRule::update_parts(const SgdStep& step, Parts parts, float* weights, float* gradients) {
  backend().sgd_step_ranges(parts, step, weights, history_.data(), gradients);
}

}  // namespace speedo
