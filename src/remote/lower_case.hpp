#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace speedo {

// Of what HTTP and users may write either way. ASCII alone.
inline std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char each) {
    return static_cast<char>(std::tolower(each));
  });
  return text;
}

}  // namespace speedo
