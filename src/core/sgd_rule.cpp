#include "core/sgd_rule.hpp"

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

void SgdRule::compute_update(std::int64_t iteration, const float* weights, float* gradients) {
  const float scale = gradient_scale(gradients);
  const float base = rate(iteration);
  for (const ParameterSlot& slot : layout().slots()) {
    if (slot.is_statistic) continue;
    backend().sgd_update(slot.count(), step_of(slot, scale, base), weights + slot.offset,
                         history_.data() + slot.offset, gradients + slot.offset);
  }
}

void SgdRule::update(std::int64_t iteration, float* weights, float* gradients) {
  const float scale = gradient_scale(gradients);
  const float base = rate(iteration);
  for (const ParameterSlot& slot : layout().slots()) {
    float* const values = weights + slot.offset;
    float* const update = gradients + slot.offset;
    if (slot.is_statistic) {
      backend().axpby(slot.count(), -1.0F, update, 1.0F, values);
    } else {
      backend().sgd_step(slot.count(), step_of(slot, scale, base), values,
                         history_.data() + slot.offset, update);
    }
  }
}

}  // namespace speedo
