#include "core/sgd_rule.hpp"

#include <utility>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

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
    const Decay decay = decay_of(slot);
    SgdStep step;
    step.rate = base * slot.lr_mult;
    step.momentum = solver().momentum();
    step.scale = scale;
    step.l1 = decay.l1;
    step.l2 = decay.l2;
    backend().sgd_update(slot.count(), step, weights + slot.offset,
                         history_.data() + slot.offset, gradients + slot.offset);
  }
}

}  // namespace speedo
