#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace speedo {

// The most that Snappy makes of one byte: an element of three bytes copies 64.
inline constexpr std::uint64_t kSnappyRatioMax = 22;

// What the packed bytes say they unpack to.
std::optional<std::uint64_t> snappy_size(std::span<const std::byte> packed);

// The first `bytes_max` bytes of what they unpack to; fewer, if the packed ones end before. False
// if they cannot be Snappy's. Takes no more memory than `bytes_max`.
bool unpack_snappy(std::span<const std::byte> packed, std::size_t bytes_max,
                   std::vector<std::byte>& unpacked);

}  // namespace speedo
