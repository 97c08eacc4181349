#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <speedo/backend/buffer.hpp>
#include <speedo/backend/device_steps.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

class Net;

// What forward passes change in a net beside its blobs, as it was at a certain time: the statistics
// among its weights, and what layers carry from pass to pass (Layer::carried_values()). A device
// with memory of its own keeps it there, and nobody waits; where it has no room, or its memory is
// the host's, it goes to the host. Thread safety: one thread at a time.
class KeptValues {
 public:
  enum class Kind { kStatistics, kAll };

  // The net outlives it. Keeps nothing yet.
  KeptValues(Net& net, Kind kind);

  // From here on keep() is guarded by `steps`, which outlives that. Keeps nothing yet. Error:
  // kFull.
  Result<void> guard(DeviceSteps& steps);
  void end_guard() { steps_ = nullptr; }

  void keep();
  // As they were when kept; not what was kept in another size.
  void restore();
  // What the statistics lost since then, in their places of the gradient arena: an update like any
  // other.
  void put_change_into_gradients();

 private:
  struct Kept {
    std::size_t count = 0;  // that are kept
    std::vector<float> values;
    Buffer on_device;
  };

  // Whether so many floats are kept, or can be, in the device's memory.
  static bool is_on_device(const Kept& kept, std::size_t count) {
    return kept.on_device.bytes() >= count * sizeof(float);
  }
  // Makes it so; what was kept elsewhere is not any more. Error: kFull.
  Result<void> provide(Kept& kept, std::size_t count);
  // Calls visit(Kept&, std::span<float> where its values are) for each, statistics first.
  template <class Visit>
  void for_each(const Visit& visit);

  Net& net_;
  const Kind kind_;
  std::vector<Kept> kept_;
  std::vector<float> change_;
  std::vector<DeviceSteps::Kept> copies_;  // of one keep()
  DeviceSteps* steps_ = nullptr;           // null: it is not guarded
};

}  // namespace speedo
