#pragma once

#include <cstddef>
#include <string_view>

namespace speedo {

// How many letters must be put in, left out or replaced to make one word of the other
// (Levenshtein's distance).
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace speedo
