#include "core/prototxt_character.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

namespace speedo {

namespace {

struct Lookalike {
  std::uint32_t first, last;  // code points
  const char* what;
};

// What word processors and web pages put in place of plain characters.
constexpr std::array kLookalikes = {
    Lookalike{0x2018, 0x201B, "a curly quote: write a plain ' instead"},
    Lookalike{0x201C, 0x201F, "a curly quote: write a plain \" instead"},
    Lookalike{0x00AB, 0x00AB, "a quote mark: write a plain \" instead"},
    Lookalike{0x00BB, 0x00BB, "a quote mark: write a plain \" instead"},
    Lookalike{0x2010, 0x2015, "a dash: write a plain - instead"},
    Lookalike{0x2212, 0x2212, "a minus sign: write a plain - instead"},
    Lookalike{0x00A0, 0x00A0, "a space that does not break: write a plain one instead"},
    Lookalike{0x2000, 0x200B, "a space of another width: write a plain one instead"},
    Lookalike{0xFEFF, 0xFEFF, "a byte order mark, which may stand at the begin only: remove it"},
};

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

Character decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  if (text.empty()) return {};
  const unsigned lead = byte(0);
  const std::size_t bytes = lead < 0x80   ? 1
                            : lead < 0xC2 ? 0
                            : lead < 0xE0 ? 2
                            : lead < 0xF0 ? 3
                            : lead < 0xF5 ? 4
                                          : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  std::uint32_t code = bytes == 1 ? lead : lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  return {code, bytes};
}

}  // namespace

std::size_t text_offset(std::string_view text, int line, int column) {
  constexpr int kTabWidth = 8;
  std::size_t at = 0;
  for (int skipped = 0; skipped < line; ++skipped) {
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  for (int reached = 0; reached < column && at < text.size(); ++at) {
    reached += text[at] == '\t' ? kTabWidth - reached % kTabWidth : 1;
  }
  return std::min(at, text.size());
}

std::string describe_character(std::string_view text) {
  const Character character = decode_utf8(text);
  if (character.bytes == 0) {
    const unsigned byte = text.empty() ? 0 : static_cast<unsigned char>(text[0]);
    return fmt::format("byte {:#04x} is no character of UTF-8: save the file as UTF-8", byte);
  }
  const std::string named =
      fmt::format("'{}' (U+{:04X}) is ", text.substr(0, character.bytes), character.code);
  for (const Lookalike& each : kLookalikes) {
    if (character.code >= each.first && character.code <= each.last) return named + each.what;
  }
  return named + "not allowed outside of quotes and comments";
}

}  // namespace speedo
