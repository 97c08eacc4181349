#include "core/layers/queued_loss_sums.hpp"

#include <speedo/backend/device_steps.hpp>

#include "core/layers/support.hpp"

namespace speedo {

Result<void> QueuedLossSums::prepare(Backend& backend,
                                     const std::function<Result<void>(Tensor&)>& allocate) {
  if (!has_own_memory(backend)) return {};
  sums_.reshape({QueuedLoss::kSumsFloats});
  return allocate(sums_);
}

std::int64_t QueuedLossSums::bytes() const { return bytes_of(sums_); }

}  // namespace speedo
