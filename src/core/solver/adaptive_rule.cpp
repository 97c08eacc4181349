#include "core/solver/adaptive_rule.hpp"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "caffe.pb.h"

namespace speedo {
namespace {

AdaptiveKind kind_of(std::string_view type) {
  if (type == "AdaGrad") return AdaptiveKind::kAdaGrad;
  if (type == "RMSProp") return AdaptiveKind::kRmsProp;
  if (type == "AdaDelta") return AdaptiveKind::kAdaDelta;
  SPEEDO_ASSERT(type == "Adam");
  return AdaptiveKind::kAdam;
}

bool has_second(AdaptiveKind kind) {
  return kind == AdaptiveKind::kAdaDelta || kind == AdaptiveKind::kAdam;
}

Error bad_field(const caffe::SolverParameter& solver, const std::string& what) {
  return {ErrorCode::kConfig, fmt::format("solver: type \"{}\" {}", solver.type(), what)};
}

// Of a mean that forgets.
Result<void> check_decay(const caffe::SolverParameter& solver, const char* field, float value) {
  if (value >= 0.0F && value < 1.0F) return {};
  return bad_field(solver, fmt::format("needs {0} from 0 to below 1, but it is {1}; set {0} in the "
                                       "solver",
                                       field, value));
}

}  // namespace

Result<void> AdaptiveRule::check_fields(const caffe::SolverParameter& solver) {
  const AdaptiveKind kind = kind_of(solver.type());
  const float delta = solver.delta();
  if (!std::isfinite(delta) || delta < 0.0F) {
    return bad_field(solver, fmt::format("needs a delta of 0 or more, but it is {}; leave it out "
                                         "for 1e-8",
                                         delta));
  }
  const bool refuses_momentum = kind == AdaptiveKind::kAdaGrad || kind == AdaptiveKind::kRmsProp;
  if (refuses_momentum && solver.momentum() != 0.0F) {
    return bad_field(solver, fmt::format("has no momentum, but it is {}; leave momentum out",
                                         solver.momentum()));
  }
  if (!refuses_momentum) SPEEDO_TRY(check_decay(solver, "momentum", solver.momentum()));
  if (kind == AdaptiveKind::kAdam) return check_decay(solver, "momentum2", solver.momentum2());
  if (kind == AdaptiveKind::kRmsProp) return check_decay(solver, "rms_decay", solver.rms_decay());
  return {};
}

Result<std::unique_ptr<UpdateRule>> AdaptiveRule::create(const caffe::SolverParameter& solver,
                                                         const ParameterLayout& layout,
                                                         Backend& backend) {
  const AdaptiveKind kind = kind_of(solver.type());
  std::unique_ptr<AdaptiveRule> rule(new AdaptiveRule(solver, layout, backend, kind));
  SPEEDO_ASSIGN(rule->first_, Arena::create(backend, layout.element_count()));
  if (has_second(kind)) {
    SPEEDO_ASSIGN(rule->second_, Arena::create(backend, layout.element_count()));
  }
  return std::unique_ptr<UpdateRule>(std::move(rule));
}

AdaptiveRule::AdaptiveRule(const caffe::SolverParameter& solver, const ParameterLayout& layout,
                           Backend& backend, AdaptiveKind kind)
    : UpdateRule(solver, layout, backend), kind_(kind) {}

std::vector<Arena*> AdaptiveRule::histories() {
  if (has_second(kind_)) return {&first_, &second_};
  return {&first_};
}

// Means that began at zero are too small by a factor that is known.
float AdaptiveRule::rate_correction(std::int64_t updates) const {
  if (kind_ != AdaptiveKind::kAdam) return 1.0F;
  const auto step = static_cast<double>(updates + 1);
  const double first = 1.0 - std::pow(static_cast<double>(solver().momentum()), step);
  const double second = 1.0 - std::pow(static_cast<double>(solver().momentum2()), step);
  return static_cast<float>(std::sqrt(second) / first);
}

AdaptiveStep AdaptiveRule::adaptive(const SgdStep& step) const {
  AdaptiveStep made{.kind = kind_, .base = step, .squares_decay = 0.0F, .delta = solver().delta()};
  if (kind_ == AdaptiveKind::kRmsProp) made.squares_decay = solver().rms_decay();
  if (kind_ == AdaptiveKind::kAdaDelta) made.squares_decay = solver().momentum();
  if (kind_ == AdaptiveKind::kAdam) made.squares_decay = solver().momentum2();
  return made;
}

AdaptiveHistories AdaptiveRule::both_histories() {
  return {first_.data(), has_second(kind_) ? second_.data() : nullptr};
}

void AdaptiveRule::compute_parts(const SgdStep& step, Parts parts, const float* weights,
                                 float* gradients) {
  backend().adaptive_update_ranges(parts, adaptive(step), weights, both_histories(), gradients);
}

void AdaptiveRule::update_parts(const SgdStep& step, Parts parts, float* weights,
                                float* gradients) {
  backend().adaptive_step_ranges(parts, adaptive(step), weights, both_histories(), gradients);
}

}  // namespace speedo
