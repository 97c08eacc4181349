#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace speedo {

// Takes numbers and pieces off the front of some bytes. After the first that is not there, all that
// follows is zero or empty, and failed() says so.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : left_(bytes) {}

  bool failed() const { return failed_; }
  std::span<const std::byte> left() const { return left_; }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > left_.size()) return fail();
    const auto taken = left_.first(static_cast<std::size_t>(count));
    left_ = left_.subspan(static_cast<std::size_t>(count));
    return taken;
  }

  // Seven bits a byte, the lowest first; the high bit says that more follow.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = take(1);
      if (byte.empty()) return 0;
      const auto bits = std::to_integer<std::uint64_t>(byte[0]);
      value |= (bits & 0x7FU) << shift;
      if (bits < 0x80U) return value;
    }
    fail();
    return 0;
  }

  // A piece behind its length.
  std::span<const std::byte> piece() { return take(varint()); }

 private:
  std::span<const std::byte> fail() {
    failed_ = true;
    left_ = {};
    return {};
  }

  std::span<const std::byte> left_;
  bool failed_ = false;
};

}  // namespace speedo
