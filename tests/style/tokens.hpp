#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace speedo {

// A piece of C++ source.
struct Token {
  std::string text;  // an identifier or number, "::", or one other character
  std::size_t line;  // from 1
};

// Splits a source into tokens; comments, literals and preprocessor lines give none.
std::vector<Token> tokens_of(const std::string& text);

// Whether an identifier or number may contain `c`.
bool is_word(char c);

}  // namespace speedo
