#pragma once

#include <cstdint>
#include <limits>

#include <speedo/base/assert.hpp>

#include "cpu/memory.hpp"

namespace speedo::cpu {

// What a maximum pooling remembers from the forward to the backward pass: which element each
// maximum is.
template <class Code>
class WinnerCodes {
 public:
  static constexpr Code kNone = std::numeric_limits<Code>::max();
  // Whether so many elements have different codes.
  static bool suffice(std::int64_t elements) { return elements < std::int64_t{kNone}; }

  explicit WinnerCodes(std::int64_t count)
      : bytes_(count * static_cast<std::int64_t>(sizeof(Code))) {}

  std::int64_t bytes() const { return bytes_; }
  // Takes the memory. Error: kFull, with the bytes asked for.
  Result<void> provide() {
    if (memory_.bytes() > 0) return {};
    SPEEDO_ASSIGN(memory_, allocate(static_cast<std::size_t>(bytes_)));
    return {};
  }
  // The memory, taken when it is first asked for if it was not provided; then it must fit.
  Code* take() {
    SPEEDO_ASSERT(provide().has_value());
    return static_cast<Code*>(memory_.data());
  }

 private:
  std::int64_t bytes_;
  Buffer memory_;
};

}  // namespace speedo::cpu
