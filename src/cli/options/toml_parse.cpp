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
      return i + size;
    }
  }
  return text.size();
}

// The first byte beyond ASCII that is in no string and no comment. Keys have none, and toml++ takes
// for granted that none of them is one of the letters that it has no table for.
std::optional<std::size_t> find_foreign(std::string_view text) {
  std::size_t at = text.size() - without_byte_order_mark(text).size();
  while (at < text.size()) {
    if (const std::size_t quotes = quotes_at(text, at); quotes > 0) {
      at = end_of_string(text, at, quotes);
    } else if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (static_cast<unsigned char>(text[at]) > 0x7F) {
      return at;
    } else {
      ++at;
    }
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
  if (const auto foreign = find_foreign(text)) {
    return Error{ErrorCode::kConfig,
                 place_of(path, position_of(text, *foreign)) +
                     ": a letter that is none of ASCII's: such stand in quotes, or in comments"};
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
