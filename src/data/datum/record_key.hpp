#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace speedo {

inline constexpr std::size_t kShownKeyBytes = 64;

// The beginning of a record's key as a message may show it.
inline std::string printable_key(std::string_view key) {
  std::string shown(key.substr(0, kShownKeyBytes));
  for (char& letter : shown) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return shown;
}

}  // namespace speedo
