#pragma once

#include <optional>
#include <string>
#include <vector>

namespace speedo {

// The words of a line without its comment. Double quotes keep blanks and '#' together. Returns what
// is wrong with the line; nothing if it is right.
std::optional<std::string> split_quoted_words(const std::string& line,
                                              std::vector<std::string>& words);

}  // namespace speedo
