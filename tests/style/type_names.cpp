// A reading of C++ that knows tokens and braces, no more: what stands before an opening brace says
// whether the brace opens a namespace, a type or something else.

#include "style/type_names.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace speedo {

namespace {

struct Token {
  std::string text;  // an identifier or number, "::", or one other character
  std::size_t line;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Splits a source into tokens; comments, literals and preprocessor lines give none.
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

// The tokens of a declaration up to the brace that opens its body.
using Head = std::vector<Token>;

// Position behind the angle brackets that open at `at`.
std::size_t behind_angles(const Head& head, std::size_t at) {
  int depth = 0;
  for (; at < head.size(); ++at) {
    if (head[at].text == "<") ++depth;
    if (head[at].text == ">" && --depth == 0) return at + 1;
  }
  return at;
}

bool is_type_key(const std::string& word) {
  return word == "class" || word == "struct" || word == "union" || word == "enum";
}

// The name of the namespace that a head opens: "" for an anonymous one, none for anything else.
std::optional<std::string> opened_namespace(const Head& head) {
  const auto key = std::find_if(head.begin(), head.end(),
                                [](const Token& token) { return token.text == "namespace"; });
  if (key == head.end()) return std::nullopt;
  std::string name;
  for (auto token = key + 1; token != head.end(); ++token) name += token->text;
  return name;
}

// The name of the type that a head defines; none if it defines no type, or a specialisation, or a
// type that was declared within another.
std::optional<Token> opened_type(const Head& head) {
  std::size_t at = 0;
  while (at < head.size() && head[at].text == "template") at = behind_angles(head, at + 1);
  if (at < head.size() && head[at].text == "requires") {
    while (at < head.size() && !is_type_key(head[at].text)) ++at;
  }
  if (at >= head.size() || !is_type_key(head[at].text)) return std::nullopt;
  const bool scoped =
      head[at].text == "enum" && at + 1 < head.size() && is_type_key(head[at + 1].text);
  at += scoped ? 2 : 1;
  // Attributes, and alignas(...), stand between key and name.
  while (at < head.size() && (head[at].text == "[" || head[at].text == "alignas")) {
    const std::string end = head[at].text == "[" ? "]" : ")";
    while (at < head.size() && head[at].text != end) ++at;
    while (at < head.size() && head[at].text == end) ++at;
  }
  if (at >= head.size() || !is_word(head[at].text[0])) return std::nullopt;
  const std::string next = at + 1 < head.size() ? head[at + 1].text : ":";
  if (next != ":" && next != "final") return std::nullopt;  // "::", "<", a function, a variable
  return head[at];
}

struct Scope {
  enum class Kind { kNamespace, kAnonymous, kOther };
  Kind kind;
  std::string name;
};

// The scopes that the present place lies in.
class Scopes {
 public:
  void open(const Head& head) {
    const std::optional<std::string> name = opened_namespace(head);
    if (!name) return scopes_.push_back({Scope::Kind::kOther, ""});
    scopes_.push_back({name->empty() ? Scope::Kind::kAnonymous : Scope::Kind::kNamespace, *name});
  }
  void close() {
    if (!scopes_.empty()) scopes_.pop_back();
  }
  bool is_visible() const {
    return std::all_of(scopes_.begin(), scopes_.end(),
                       [](const Scope& scope) { return scope.kind == Scope::Kind::kNamespace; });
  }
  std::string prefix() const {
    std::string text;
    for (const Scope& scope : scopes_) text += scope.name + "::";
    return text;
  }

 private:
  std::vector<Scope> scopes_;
};

}  // namespace

std::vector<TypeDefinition> type_definitions(const std::string& text) {
  std::vector<TypeDefinition> found;
  Scopes scopes;
  Head head;
  for (Token& token : Tokenizer(text).run()) {
    if (token.text == "{") {
      const std::optional<Token> type = opened_type(head);
      if (type && scopes.is_visible()) found.push_back({scopes.prefix() + type->text, type->line});
      scopes.open(head);
      head.clear();
    } else if (token.text == "}" || token.text == ";") {
      if (token.text == "}") scopes.close();
      head.clear();
    } else {
      head.push_back(std::move(token));
    }
  }
  return found;
}

}  // namespace speedo
