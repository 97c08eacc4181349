#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace speedo {

// What a process asks of its helper, and what it is answered. What a kind and its numbers mean is
// for the two to settle.
using HelperNumbers = std::array<std::int64_t, 4>;

struct HelperTask {
  std::uint32_t kind = 0;
  HelperNumbers numbers{};
  std::span<const std::byte> input = {};
  int file = -1;                  // a descriptor that is given along; -1: none
  std::string_view subject = {};  // what errors begin with that are not the helper's own
};

// The most tasks that are handed over together, the most bytes of their inputs, and the bytes of
// output behind which a helper stops: what it has in hand stays small.
inline constexpr std::size_t kGroupTasksMax = 32;
inline constexpr std::size_t kGroupInputBytes = std::size_t{1} << 20U;
inline constexpr std::size_t kGroupOutputBytes = std::size_t{4} << 20U;

// In the process that asked. The bytes lie in memory that the helper may go on writing to: what is
// to be checked must be copied first. Valid until the helper's next
// task or group.
struct HelperReply {
  HelperNumbers numbers{};
  std::span<std::byte> output;
};

}  // namespace speedo
