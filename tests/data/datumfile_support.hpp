#pragma once

#include <cstdint>
#include <string>

namespace speedo {

inline std::string little32_text(std::uint32_t value) {
  std::string text;
  for (int shift = 0; shift < 32; shift += 8) text.push_back(static_cast<char>(value >> shift));
  return text;
}

// One record as a datumfile holds it.
inline std::string record_text(const std::string& key, const std::string& value) {
  return little32_text(static_cast<std::uint32_t>(key.size() + value.size() + 8)) +
         little32_text(static_cast<std::uint32_t>(key.size())) + key +
         little32_text(static_cast<std::uint32_t>(value.size())) + value;
}

}  // namespace speedo
