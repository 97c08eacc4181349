#include "core/solver/solver_checks.hpp"

#include <utility>

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {

Error diverged(const std::string& what) {
  return {ErrorCode::kNotFinite, what + "; lower base_lr, set clip_gradients or check the data"};
}

Error data_at_fault(std::int64_t iteration, int losses) {
  return {ErrorCode::kNotFinite,
          fmt::format("training ends at iteration {} with {} losses that are not finite; they did "
                      "not change the weights, which give a finite one for other data: look for "
                      "values in the data that are not finite or far too large",
                      iteration, losses)};
}

// As in Caffe, test_interval is nothing without a test.
Result<void> check_intervals(const caffe::SolverParameter& solver) {
  const std::int64_t tested_each = solver.test_iter_size() > 0 ? solver.test_interval() : 0;
  const std::pair<const char*, std::int64_t> fields[] = {{"display", solver.display()},
                                                         {"snapshot", solver.snapshot()},
                                                         {"test_interval", tested_each},
                                                         {"max_iter", solver.max_iter()}};
  for (const auto& [name, value] : fields) {
    if (value < 0) {
      return Error{ErrorCode::kConfig,
                   fmt::format("solver: {} is {}; it must not be negative", name, value)};
    }
  }
  if (solver.average_loss() < 1) {
    return Error{ErrorCode::kConfig, fmt::format("solver: average_loss is {}; it must be 1 or more",
                                                 solver.average_loss())};
  }
  return {};
}

}  // namespace speedo
