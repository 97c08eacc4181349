// Caffe's learning-rate policies. Powers and exponentials are taken in double and rounded once,
// which is what Caffe's float program does.

#include <speedo/core/update_rule.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {
namespace {

// Caffe looks at the next step value once per iteration and advances by at most one, so step values
// that are equal, or not rising, take one iteration each.
std::int32_t multistep(const caffe::SolverParameter& solver, std::int64_t iteration) {
  std::int32_t steps = 0;
  std::int64_t earliest = 0;
  for (const std::int64_t value : solver.stepvalue()) {
    const std::int64_t at = std::max(value, earliest);
    if (iteration < at) break;
    ++steps;
    earliest = at + 1;
  }
  return steps;
}

Error bad_field(const caffe::SolverParameter& solver, const char* field, const char* rule,
                double value) {
  return {ErrorCode::kConfig,
          fmt::format("solver: lr_policy \"{}\" needs {} {}, but it is {}; set {} in the solver",
                      solver.lr_policy(), field, rule, value, field)};
}

Result<void> check_policy_fields(const caffe::SolverParameter& solver) {
  const std::string& policy = solver.lr_policy();
  const bool divides_by_step = policy == "step" || policy == "sigmoid";
  if (divides_by_step && solver.stepsize() <= 0) {
    return bad_field(solver, "stepsize", "> 0", solver.stepsize());
  }
  const bool uses_gamma = policy != "fixed" && policy != "poly";
  if (uses_gamma && !(solver.gamma() >= 0)) {
    return bad_field(solver, "gamma", ">= 0", solver.gamma());
  }
  if (policy == "poly" && solver.max_iter() <= 0) {
    return bad_field(solver, "max_iter", "> 0", solver.max_iter());
  }
  return {};
}

double decayed(const caffe::SolverParameter& solver, double exponent) {
  return static_cast<double>(solver.base_lr()) *
         std::pow(static_cast<double>(solver.gamma()), exponent);
}

}  // namespace

std::int32_t current_step(const caffe::SolverParameter& solver, std::int64_t iteration) {
  if (solver.lr_policy() == "multistep") return multistep(solver, iteration);
  if (solver.lr_policy() == "step" && solver.stepsize() > 0) {
    return static_cast<std::int32_t>(iteration / solver.stepsize());
  }
  return 0;
}

Result<float> learning_rate(const caffe::SolverParameter& solver, std::int64_t iteration) {
  SPEEDO_TRY(check_policy_fields(solver));
  const std::string& policy = solver.lr_policy();
  const double base = solver.base_lr();
  const double gamma = solver.gamma();
  const auto at = static_cast<double>(iteration);
  double rate = base;
  if (policy == "step" || policy == "multistep") {
    rate = decayed(solver, current_step(solver, iteration));
  } else if (policy == "exp") {
    rate = decayed(solver, at);
  } else if (policy == "inv") {
    rate = base * std::pow(1.0 + gamma * at, -static_cast<double>(solver.power()));
  } else if (policy == "poly") {
    // Past max_iter the rate stays 0; a negative base would give no number.
    const double left = std::max(0.0, 1.0 - at / solver.max_iter());
    rate = base * std::pow(left, static_cast<double>(solver.power()));
  } else if (policy == "sigmoid") {
    rate = base / (1.0 + std::exp(-gamma * (at - solver.stepsize())));
  } else if (policy != "fixed") {
    return Error{ErrorCode::kConfig,
                 fmt::format("solver: unknown lr_policy \"{}\"; use fixed, step, exp, inv, "
                             "multistep, poly or sigmoid",
                             policy)};
  }
  return static_cast<float>(rate);
}

}  // namespace speedo
