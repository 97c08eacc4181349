#pragma once

#include <cstddef>
#include <string_view>

namespace speedo {

// The text without what of `blanks` stands at its ends; empty if nothing else is in it.
inline std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

}  // namespace speedo
