// A reading of C++ that knows tokens and brackets: outside of bodies a declaration's first round
// brackets, behind a name and before any "=", hold the parameters of a function.

#include "style/parameter_counts.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "style/tokens.hpp"

namespace speedo {

namespace {

using Declaration = std::vector<Token>;

bool is_one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return text == word; });
}

bool opens(const std::string& text) { return is_one_of(text, {"(", "[", "{"}); }
bool closes(const std::string& text) { return is_one_of(text, {")", "]", "}"}); }

// "->" is no bracket.
bool closes_angle(const Declaration& tokens, std::size_t at) {
  return tokens[at].text == ">" && (at == 0 || tokens[at - 1].text != "-");
}

// Position behind the brackets that open at `at`; angle brackets count where `at` has one.
std::size_t behind_brackets(const Declaration& tokens, std::size_t at) {
  int depth = 0, angles = 0;
  for (; at < tokens.size(); ++at) {
    if (opens(tokens[at].text)) ++depth;
    if (closes(tokens[at].text)) --depth;
    if (depth == 0 && tokens[at].text == "<") ++angles;
    if (depth == 0 && closes_angle(tokens, at)) --angles;
    if (depth == 0 && angles == 0) return at + 1;
  }
  return at;
}

// Between the brackets at `open` and behind them.
std::size_t count_parameters(const Declaration& tokens, std::size_t open, std::size_t behind) {
  const std::size_t end = behind - 1;
  if (end == open + 1 || (end == open + 2 && tokens[open + 1].text == "void")) return 0;
  std::size_t count = 1;
  for (std::size_t at = open + 1; at < end;) {
    if (opens(tokens[at].text) || tokens[at].text == "<") {
      at = behind_brackets(tokens, at);
      continue;
    }
    count += tokens[at].text == ",";
    ++at;
  }
  return count;
}

std::size_t behind_operator_name(const Declaration& tokens, std::size_t at) {
  ++at;
  if (at + 1 < tokens.size() && tokens[at].text == "(" && tokens[at + 1].text == ")") return at + 2;
  while (at < tokens.size() && tokens[at].text != "(") ++at;
  return at;
}

// The function that a declaration outside of bodies declares; none if it declares another thing.
// One that begins with a comma goes on with a constructor's members.
std::optional<FunctionHead> declared_function(const Declaration& tokens) {
  if (tokens.empty() || is_one_of(tokens[0].text, {",", "using", "static_assert", "friend"})) {
    if (tokens.empty() || tokens[0].text != "friend") return std::nullopt;
  }
  for (std::size_t at = 0; at < tokens.size();) {
    const std::string& text = tokens[at].text;
    if (text == "=") return std::nullopt;
    if (text == "operator") {
      const std::size_t open = behind_operator_name(tokens, at);
      if (open >= tokens.size()) return std::nullopt;
      const std::size_t behind = behind_brackets(tokens, open);
      return FunctionHead{"operator", tokens[at].line, count_parameters(tokens, open, behind)};
    }
    const bool called = at + 1 < tokens.size() && tokens[at + 1].text == "(";
    if (called && is_one_of(text, {"alignas", "decltype", "explicit", "requires", "noexcept"})) {
      at = behind_brackets(tokens, at + 1);
    } else if (called && is_word(text[0])) {
      const std::size_t behind = behind_brackets(tokens, at + 1);
      return FunctionHead{text, tokens[at].line, count_parameters(tokens, at + 1, behind)};
    } else {
      at = opens(text) || text == "<" ? behind_brackets(tokens, at) : at + 1;
    }
  }
  return std::nullopt;
}

// Whether the brace behind a declaration opens a namespace or a type.
bool opens_declarations(const Declaration& tokens) {
  std::size_t at = 0;
  while (at < tokens.size() && tokens[at].text == "template") at = behind_brackets(tokens, at + 1);
  if (at == tokens.size()) return false;
  if (is_one_of(tokens[at].text, {"namespace", "inline", "extern"}) && !declared_function(tokens)) {
    const auto is_variable = [](const Token& token) { return token.text == "="; };
    return std::none_of(tokens.begin(), tokens.end(), is_variable);
  }
  return is_one_of(tokens[at].text, {"class", "struct", "union"}) && !declared_function(tokens);
}

}  // namespace

std::vector<FunctionHead> function_heads(const std::string& text) {
  std::vector<FunctionHead> found;
  Declaration declaration;
  int rounds = 0, body_depth = 0;  // open round brackets of the declaration; braces of a body
  const auto end_declaration = [&] {
    if (auto head = declared_function(declaration)) found.push_back(std::move(*head));
    declaration.clear();
  };
  for (Token& token : tokens_of(text)) {
    if (body_depth > 0) {
      body_depth += token.text == "{" ? 1 : token.text == "}" ? -1 : 0;
      continue;
    }
    if (token.text == "(") ++rounds;
    if (token.text == ")") --rounds;
    if (rounds == 0 && token.text == "{") {
      if (!opens_declarations(declaration)) body_depth = 1;
      end_declaration();
    } else if (rounds == 0 && token.text == ";") {
      end_declaration();
    } else if (rounds == 0 && token.text == "}") {
      declaration.clear();
    } else {
      declaration.push_back(std::move(token));
    }
  }
  return found;
}

}  // namespace speedo
