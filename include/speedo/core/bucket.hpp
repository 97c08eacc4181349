#pragma once

#include <algorithm>
#include <cstdint>

namespace speedo {

// A range of an arena, in elements: the unit in which weights and gradients are ready, and travel.
struct Bucket {
  std::int64_t offset = 0, count = 0;

  std::int64_t end() const { return offset + count; }
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

// What both cover; of count 0 if there is nothing.
inline Bucket common_part(const Bucket& a, const Bucket& b) {
  const std::int64_t begin = std::max(a.offset, b.offset);
  return {begin, std::max<std::int64_t>(0, std::min(a.end(), b.end()) - begin)};
}

}  // namespace speedo
