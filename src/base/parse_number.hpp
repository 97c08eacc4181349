#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace speedo {

// The number that all of `text` is, in the form that C++ writes it; nothing for another text, also
// for one with blanks around the number, or for a number that the type cannot hold.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value);
  if (code != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace speedo
