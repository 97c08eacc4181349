#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// A flag as a command knows it.
struct FlagName {
  std::string name;  // in kebab case, without dashes
  bool takes_value = true;
};

// One spelling for many: -maxIter, --max-iter, --max_iter and --MAXITER are all "maxiter".
std::string squash(std::string_view flag);

// A dash or two and a letter; "-3" is a number.
bool looks_like_flag(const std::string& argument);

// The names of the flags among `arguments`, squashed, in order; none behind "--".
std::vector<std::string> squashed_flags(const std::vector<std::string>& arguments);

// Joins the words behind flag `name` (squashed), up to the next flag and `words_max` in all, to it:
// "--name=one two". What it has behind an equals sign counts as the first.
std::vector<std::string> fold_words(const std::vector<std::string>& arguments,
                                    std::string_view name, std::size_t words_max);

// Rewrites command-line arguments so that every flag is "--name" or "--name=value" with the name
// the command knows. A flag may be written with one dash (Caffe) or two, in camel, kebab or snake
// case, and its value after '=' or as the next argument. Everything else passes through; "--" ends
// flags. Error: kUsage for an unknown flag (naming the nearest known one) or a missing value.
Result<std::vector<std::string>> normalize_arguments(const std::vector<std::string>& raw,
                                                     const std::vector<FlagName>& known);

// The candidate that `word` was most likely meant to be; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace speedo
