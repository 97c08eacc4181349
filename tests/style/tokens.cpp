#include "style/tokens.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace speedo {

namespace {

class Tokenizer {
 public:
  explicit Tokenizer(const std::string& text) : text_(text) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) step();
    return std::move(tokens_);
  }

 private:
  bool starts(const char* prefix) const {
    return text_.compare(at_, std::string(prefix).size(), prefix) == 0;
  }

  void skip(std::size_t count) {
    const std::size_t end = std::min(at_ + count, text_.size());
    for (; at_ < end; ++at_) line_ += text_[at_] == '\n';
  }
  void skip_behind(const std::string& end, std::size_t from) {
    const std::size_t found = text_.find(end, std::min(at_ + from, text_.size()));
    skip(found == std::string::npos ? text_.size() - at_ : found + end.size() - at_);
  }
  void skip_literal(char quote) {
    skip(1);
    while (at_ < text_.size() && text_[at_] != quote) skip(text_[at_] == '\\' ? 2 : 1);
    skip(1);
  }
  // R"delimiter(...)delimiter"
  void skip_raw_literal() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string::npos) return skip(text_.size() - at_);
    skip_behind(")" + text_.substr(at_ + 2, open - at_ - 2) + "\"", 2);
  }
  void skip_directive() {
    while (at_ < text_.size() && text_[at_] != '\n') skip(text_[at_] == '\\' ? 2 : 1);
  }

  void step() {
    const char c = text_[at_];
    if (starts("//")) return skip_behind("\n", 2);
    if (starts("/*")) return skip_behind("*/", 2);
    if (starts("R\"")) return skip_raw_literal();
    if (c == '"' || c == '\'') return skip_literal(c);
    if (c == '#') return skip_directive();
    if (std::isspace(static_cast<unsigned char>(c))) return skip(1);
    std::size_t length = starts("::") ? 2 : 1;
    if (is_word(c)) {
      // A digit separator stands within a number, not at the start of a character.
      const bool number = std::isdigit(static_cast<unsigned char>(c));
      const auto inside = [&](char next) { return is_word(next) || (number && next == '\''); };
      while (at_ + length < text_.size() && inside(text_[at_ + length])) ++length;
    }
    tokens_.push_back({text_.substr(at_, length), line_});
    skip(length);
  }

  const std::string& text_;
  std::size_t at_ = 0, line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(const std::string& text) { return Tokenizer(text).run(); }

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace speedo
