#pragma once

#include <cstdint>

#include <speedo/base/ids.hpp>

namespace speedo {

// Weights of replicated updates as of a version, to be compared: checksum_of() their bytes.
struct WeightsCheck {
  Version version;
  std::uint64_t digest = 0;
  bool operator==(const WeightsCheck&) const = default;
};

}  // namespace speedo
