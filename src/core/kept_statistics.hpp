#pragma once

#include <cstdint>
#include <vector>

#include <speedo/backend/buffer.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

class DeviceSteps;
class Net;

// The statistics among a net's weights, which forward passes change: what they were at a certain
// time. They are few, so they go by way of the host, unless they are kept on the device. Thread
// safety: one thread at a time.
class KeptStatistics {
 public:
  // The net outlives it. Keeps nothing yet.
  explicit KeptStatistics(Net& net);

  // From here on keep() waits for nothing and is guarded by `steps`, which outlives that. Keeps
  // nothing yet. Error: kFull.
  Result<void> keep_on_device(DeviceSteps& steps);
  void keep_on_host();

  void keep();
  // As they were when kept.
  void restore();
  // What they lost since then, in their places of the gradient arena: an update like any other.
  void put_change_into_gradients();

 private:
  struct Kept {
    std::int64_t offset;
    std::vector<float> values;
  };

  Net& net_;
  std::vector<Kept> kept_;
  std::vector<float> change_;
  DeviceSteps* steps_ = nullptr;
  std::vector<Buffer> on_device_;  // of each that is kept, if there are steps
};

}  // namespace speedo
