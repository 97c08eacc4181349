#pragma once

#include <cstdint>

#include "gpu/launch/kernel.hpp"

namespace speedo::gpu {

// A number by which many indices are divided: by a multiplication and a shift where both are below
// 2^31 (Granlund and Montgomery 1994), since processors without a unit for it take dozens of
// instructions. Requires: value > 0.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t value) : value_(value), is_fast_(value <= kFastMax) {
    if (!is_fast_) return;
    while ((std::int64_t{1} << shift_) < value) ++shift_;
    const std::uint64_t excess = (std::uint64_t{1} << shift_) - static_cast<std::uint64_t>(value);
    factor_ = static_cast<std::uint32_t>((excess << 32U) / static_cast<std::uint64_t>(value) + 1);
  }

  SPEEDO_HOST_DEVICE std::int64_t value() const { return value_; }
  // Of an index of 0 or more; one that is an int takes fewer registers.
  SPEEDO_HOST_DEVICE std::int64_t quotient(std::int64_t index) const {
    if (!is_fast_ || index > kFastMax) return index / value_;
    const auto small = static_cast<std::uint32_t>(index);
    const auto high = static_cast<std::uint32_t>((std::uint64_t{small} * factor_) >> 32U);
    return (small + high) >> shift_;
  }
  SPEEDO_HOST_DEVICE int quotient(int index) const {
    if (!is_fast_) return 0;
    const auto small = static_cast<std::uint32_t>(index);
    const auto high = static_cast<std::uint32_t>((std::uint64_t{small} * factor_) >> 32U);
    return static_cast<int>((small + high) >> shift_);
  }
  SPEEDO_HOST_DEVICE std::int64_t remainder(std::int64_t index) const {
    return index - quotient(index) * value_;
  }

 private:
  static constexpr std::int64_t kFastMax = 2147483647;

  std::int64_t value_ = 1;
  std::uint32_t factor_ = 1;
  std::uint32_t shift_ = 0;
  bool is_fast_ = true;
};

}  // namespace speedo::gpu
