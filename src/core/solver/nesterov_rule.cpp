#include "core/solver/nesterov_rule.hpp"

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

void NesterovRule::compute_parts(const SgdStep& step, Parts parts, const float* weights,
                                 float* gradients) {
  SgdStep advance = step;
  advance.sign = 1.0F;
  for (const UpdateRange& part : parts) {
    float* const history = history_.data() + part.first;
    float* const update = gradients + part.first;
    backend().copy(part.count, history, before_.data());
    backend().sgd_update(part.count, step_of(advance, part), weights + part.first, history, update);
    backend().axpby(part.count, -step.sign * step.momentum, before_.data(),
                    step.sign * (1.0F + step.momentum), update);
  }
}

}  // namespace speedo
