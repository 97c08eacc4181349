#pragma once

#include <string_view>

namespace speedo {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Editors on Windows put the mark before a text; it is no part of it. The text stays whose it is.
inline std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

}  // namespace speedo
