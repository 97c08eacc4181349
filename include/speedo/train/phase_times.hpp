#pragma once

#include <cstdint>

namespace speedo {

// Where a worker's time goes, one after another, in microseconds on its own clock.
struct PhaseTimes {
  std::uint64_t data_us = 0;      // waiting for batches
  std::uint64_t forward_us = 0;
  std::uint64_t backward_us = 0;  // the update rule with it
  std::uint64_t exchange_us = 0;  // waiting for weights, and for the contribution to be stored
  std::uint64_t wait_us = 0;      // between two runs: for the master and the other workers

  std::uint64_t compute_us() const { return forward_us + backward_us; }
  std::uint64_t run_us() const { return data_us + compute_us() + exchange_us; }
  PhaseTimes& operator+=(const PhaseTimes& other) {
    data_us += other.data_us;
    forward_us += other.forward_us;
    backward_us += other.backward_us;
    exchange_us += other.exchange_us;
    wait_us += other.wait_us;
    return *this;
  }
  bool operator==(const PhaseTimes&) const = default;
};

// Bytes of records between a worker and the store.
struct Traffic {
  std::uint64_t pushed_bytes = 0;  // contributions
  std::uint64_t pulled_bytes = 0;  // weights
  Traffic& operator+=(const Traffic& other) {
    pushed_bytes += other.pushed_bytes;
    pulled_bytes += other.pulled_bytes;
    return *this;
  }
  Traffic operator-(const Traffic& earlier) const {
    return {pushed_bytes - earlier.pushed_bytes, pulled_bytes - earlier.pulled_bytes};
  }
  bool operator==(const Traffic&) const = default;
};

}  // namespace speedo
