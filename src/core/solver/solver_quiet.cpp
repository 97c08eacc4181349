// Iterations whose losses stay on the device, and what is done when they are read.

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/solver/solver_impl.hpp"

namespace speedo {

// Whether nothing of this iteration is logged, but for a loss that is not finite.
bool Solver::Impl::is_quiet() const {
  if (quiet == nullptr || iteration == loud_iteration || display_due()) return false;
  if (due(iteration, param.test_interval())) return false;
  if (scale && quiet->pending() >= scale->until_growth()) return false;
  return param.lr_policy() != "multistep" || iteration == 0 ||
         current_step(param, iteration) == current_step(param, iteration - 1);
}

Result<void> Solver::Impl::iterate_quietly() {
  const Instant start = steady_clock().now();
  const std::chrono::nanoseconds waited_before = waited();
  if (scale) nets.train->set_gradient_scale(scale->value());
  auto queued = quiet->queue(iteration);
  const std::chrono::nanoseconds data_wait = waited() - waited_before;
  times.data_wait += data_wait;
  times.compute += steady_clock().now() - start - data_wait;
  if (queued) ++iteration;
  const bool ends_in_snapshot = due(iteration, param.snapshot()) && iteration != last_iteration;
  if (!queued || ends_in_snapshot || quiet->is_due()) {
    SPEEDO_ASSIGN(const bool went_back, settle());
    if (went_back) return {};
  }
  SPEEDO_TRY(queued);
  if (ends_in_snapshot) SPEEDO_TRY(snapshot());
  return poll();
}

// Takes note of the losses of the quiet iterations. True: one was not finite; what came after it
// has changed nothing, and training goes on from there, aloud.
Result<bool> Solver::Impl::settle() {
  if (quiet == nullptr || quiet->pending() == 0) return false;
  const std::int64_t end = iteration;
  const Instant start = steady_clock().now();
  iteration -= quiet->pending();
  const std::vector<float> losses = quiet->read();
  times.compute += steady_clock().now() - start;
  for (const float loss : losses) {
    if (!std::isfinite(loss)) {
      loud_iteration = iteration;
      kept->restore();
      read_from(iteration);
      return true;
    }
    non_finite_in_a_row = 0;
    if (scale) scale->succeed();
    smoothed.add(loss);
    ++iteration;
    if (hooks.progress) hooks.progress(iteration, loss);
  }
  if (iteration == end) return false;
  return Error{ErrorCode::kInternal,
               fmt::format("the device has lost the losses behind iteration {}", iteration)};
}

}  // namespace speedo
