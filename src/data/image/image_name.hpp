#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace speedo {

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return lower;
}

// "jpg" of "a/b.JPG"; empty for a name without an ending.
inline std::string ending_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  const bool none = dot == std::string_view::npos || name.find('/', dot) != std::string_view::npos;
  return none ? std::string() : lower_case(name.substr(dot + 1));
}

}  // namespace speedo
