#pragma once

#include <cstdint>
#include <vector>

namespace speedo {

class Net;

// The statistics among a net's weights, which forward passes change: what they were at a certain
// time. They are few, so they go by way of the host. Thread safety: one thread at a time.
class KeptStatistics {
 public:
  // The net outlives it. Keeps nothing yet.
  explicit KeptStatistics(Net& net);

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
};

}  // namespace speedo
