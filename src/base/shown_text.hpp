#pragma once

#include <string>
#include <string_view>

namespace speedo {

// A text that data or another program has made, to be shown to people: no control characters, of
// UTF-8's second set neither, so that it cannot move a cursor or begin a line of a log.
// `kept`: those that stay as they are.
inline std::string shown_text(std::string_view text, std::string_view kept = {}) {
  std::string shown(text);
  unsigned char before = 0;
  for (char& each : shown) {
    const auto letter = static_cast<unsigned char>(each);
    const bool second_set = before == 0xc2 && letter >= 0x80 && letter < 0xa0;
    const bool is_control = letter < 0x20 || letter == 0x7f || second_set;
    if (is_control && kept.find(each) == std::string_view::npos) each = '?';
    before = letter;
  }
  return shown;
}

}  // namespace speedo
