#include "cli/quoted_words.hpp"

#include <cctype>
#include <utility>

namespace speedo {

std::optional<std::string> split_quoted_words(const std::string& line,
                                              std::vector<std::string>& words) {
  std::string word;
  bool is_quoted = false, has_word = false;
  for (const char c : line) {
    if (c == '"') {
      is_quoted = !is_quoted;
      has_word = true;
    } else if (!is_quoted && c == '#') {
      break;
    } else if (!is_quoted && std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (has_word) words.push_back(std::exchange(word, {}));
      has_word = false;
    } else {
      word += c;
      has_word = true;
    }
  }
  if (is_quoted) return "a double quote has no end";
  if (has_word) words.push_back(word);
  return std::nullopt;
}

}  // namespace speedo
