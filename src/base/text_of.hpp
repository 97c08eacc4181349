#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace speedo {

// The same bytes as text; whose they are, they stay.
inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace speedo
