#pragma once

#include <cstdint>
#include <functional>

#include <speedo/base/result.hpp>
#include <speedo/core/tensor.hpp>

namespace speedo {

class Backend;

// QueuedLoss::weight of a layer whose loss this is: null if it does not count, so that no backward
// pass asks for it.
inline const float* loss_gradient(const Tensor& loss) {
  return loss.has_grad() ? loss.grad() : nullptr;
}

// QueuedLoss::sums of a layer's loss that stays on a device with memory of its own.
class QueuedLossSums {
 public:
  // For a layer's prepare(), with its allocate(); on other devices nothing is needed. Error:
  // allocate()'s.
  Result<void> prepare(Backend& backend, const std::function<Result<void>(Tensor&)>& allocate);
  std::int64_t bytes() const;
  // Requires: prepare(), on such a device.
  float* data() { return sums_.data(); }

 private:
  Tensor sums_{Shape{0}};
};

}  // namespace speedo
