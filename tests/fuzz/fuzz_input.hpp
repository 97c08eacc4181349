#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include <speedo/base/digest.hpp>

#include "fuzz/fuzz_target.hpp"

namespace speedo::fuzz {

inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Takes numbers and pieces off the front of an input; what is not there is zero or empty.
class Input {
 public:
  explicit Input(Bytes bytes) : left_(bytes) {}

  Bytes left() const { return left_; }
  Bytes take(std::size_t count) {
    const Bytes taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  // Little-endian.
  template <class Number>
  Number number() {
    static_assert(std::is_integral_v<Number>);
    Number value = 0;
    const Bytes taken = take(sizeof value);
    if (!taken.empty()) std::memcpy(&value, taken.data(), taken.size());
    return value;
  }
  std::uint8_t byte() { return number<std::uint8_t>(); }
  bool flag() { return (byte() & 1U) != 0; }
  // A piece behind its length.
  Bytes piece() { return take(number<std::uint16_t>()); }
  std::string text() { return text_of(take(left_.size())); }

 private:
  Bytes left_;
};

// `text` with the XXH3 of what stands behind it, little-endian, at `offset`: no change that is made
// at random has the right one.
inline std::string with_checksum(std::string text, std::size_t offset) {
  const std::size_t end = offset + sizeof(std::uint64_t);
  if (text.size() < end) return text;
  const std::uint64_t sum =
      checksum_of(std::as_bytes(std::span(text.data() + end, text.size() - end)));
  std::memcpy(text.data() + offset, &sum, sizeof sum);
  return text;
}

}  // namespace speedo::fuzz
