#include "core/nesterov_rule.hpp"

#include <algorithm>
#include <utility>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<std::unique_ptr<UpdateRule>> NesterovRule::create(const caffe::SolverParameter& solver,
                                                         const ParameterLayout& layout,
                                                         Backend& backend) {
  std::int64_t largest = 0;
  for (const ParameterSlot& slot : layout.slots()) largest = std::max(largest, slot.count());
  SPEEDO_ASSIGN(Arena history, Arena::create(backend, layout.element_count()));
  SPEEDO_ASSIGN(Arena before, Arena::create(backend, largest));
  std::unique_ptr<UpdateRule> rule(new NesterovRule(solver, layout, backend, std::move(history),
                                                    std::move(before)));
  return rule;
}

NesterovRule::NesterovRule(const caffe::SolverParameter& solver, const ParameterLayout& layout,
                           Backend& backend, Arena history, Arena before)
    : UpdateRule(solver, layout, backend),
      history_(std::move(history)),
      before_(std::move(before)) {}

void NesterovRule::compute_update(std::int64_t iteration, const float* weights,
                                  float* gradients) {
  const float scale = gradient_scale(gradients);
  const float base = rate(iteration);
  const float momentum = solver().momentum();
  for (const ParameterSlot& slot : layout().slots()) {
    if (slot.is_statistic) continue;
    float* const history = history_.data() + slot.offset;
    float* const update = gradients + slot.offset;
    backend().copy(slot.count(), history, before_.data());
    backend().sgd_update(slot.count(), step_of(slot, scale, base), weights + slot.offset, history,
                         update);
    backend().axpby(slot.count(), -momentum, before_.data(), 1.0F + momentum, update);
  }
}

}  // namespace speedo
