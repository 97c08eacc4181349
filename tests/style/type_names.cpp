// A reading of C++ that knows tokens and braces, no more: what stands before an opening brace says
// whether the brace opens a namespace, a type or something else.

#include "style/type_names.hpp"

#include <algorithm>
#include <optional>

#include "style/tokens.hpp"

namespace speedo {

namespace {

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
  for (Token& token : tokens_of(text)) {
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
