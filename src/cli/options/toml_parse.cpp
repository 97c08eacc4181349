#include "cli/options/toml_parse.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/byte_order_mark.hpp"

namespace speedo {

namespace {

// In one key. toml++ descends as deep as a key has dots, so that a long one ends the stack; it
// limits how deep values lie in each other, and so all that a file can nest.
constexpr int kKeyDotsMax = 16;

// How long the mark of a string is that begins there, one or three quotes; 0: none begins.
std::size_t quotes_at(std::string_view text, std::size_t at) {
  const char quote = text[at];
  if (quote != '"' && quote != '\'') return 0;
  return text.substr(at, 3) == std::string(3, quote) ? 3 : 1;
}

// Behind a string that begins at `at` with `size` quotes; one of a line ends with it.
std::size_t end_of_string(std::string_view text, std::size_t at, std::size_t size) {
  const std::string_view mark = text.substr(at, size);
  for (std::size_t i = at + size; i < text.size(); ++i) {
    if (mark[0] == '"' && text[i] == '\\') {
      ++i;
    } else if (size == 1 && text[i] == '\n') {
      return i;
    } else if (text.substr(i, size) == mark) {
      // Up to two quotes before those that end a string of several lines belong to it.
      std::size_t end = i + size;
      while (size == 3 && end < std::min(i + 5, text.size()) && text[end] == mark[0]) ++end;
      return end;
    }
  }
  return text.size();
}

bool is_key_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' || letter == ' ' ||
         letter == '\t';
}

// Whether strings, arrays and tables may begin behind this letter. In the middle of a word toml++
// takes a quote for a part of it, and so what follows for no string.
bool may_begin_behind(char before) {
  constexpr std::string_view kBefore = " \t\r\n=[{,.";
  return kBefore.find(before) != std::string_view::npos;
}

struct TomlFault {
  std::size_t at = 0;
  const char* what = "";
};

// What is in no string and no comment, and toml++ takes for granted that it never sees: a letter
// beyond ASCII that it has no table for (keys have none), and a key with dots without end. And what
// would make it see other strings than this sees.
std::optional<TomlFault> find_fault(std::string_view text) {
  std::size_t at = text.size() - without_byte_order_mark(text).size();
  int dots = 0;
  char before = '\n';  // the letter before `at`
  while (at < text.size()) {
    const bool begins = std::string_view("\"'[{").find(text[at]) != std::string_view::npos;
    if (begins && !may_begin_behind(before)) {
      return TomlFault{at, "a quote or bracket in the middle of a word"};
    }
    if (const std::size_t quotes = quotes_at(text, at); quotes > 0) {
      at = end_of_string(text, at, quotes);
      before = text[at - 1];
      continue;
    }
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
      before = '#';
      continue;
    }
    if (static_cast<unsigned char>(text[at]) > 0x7F) {
      return TomlFault{at,
                       "a letter that is none of ASCII's: such stand in quotes, or in comments"};
    }
    if (text[at] == '.') {
      if (++dots > kKeyDotsMax) return TomlFault{at, "a key with more dots than any has"};
    } else if (!is_key_letter(text[at])) {
      dots = 0;
    }
    before = text[at];
    ++at;
  }
  return std::nullopt;
}

toml::source_position position_of(std::string_view text, std::size_t at) {
  toml::source_position position{1, 1};
  for (const char letter : text.substr(0, at)) {
    const bool is_line = letter == '\n';
    position.line += is_line ? 1 : 0;
    position.column = is_line ? 1 : position.column + 1;
  }
  return position;
}

}  // namespace

Result<toml::table> parse_toml(const std::string& text, const std::string& path) {
  if (const auto fault = find_fault(text)) {
    return Error{ErrorCode::kConfig,
                 place_of(path, position_of(text, fault->at)) + ": " + fault->what};
  }
  toml::parse_result parsed = toml::parse(text, path);
  if (parsed) return std::move(parsed).table();
  return Error{ErrorCode::kConfig, place_of(path, parsed.error().source().begin) + ": " +
                                       std::string(parsed.error().description())};
}

std::string place_of(const std::string& path, const toml::source_position& at) {
  return fmt::format("{}:{}:{}", path, at.line, at.column);
}

}  // namespace speedo
