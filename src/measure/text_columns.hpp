#pragma once

#include <string>
#include <vector>

namespace speedo {

using Cells = std::vector<std::string>;

// Rows as wide as they need to be: the first column to the left, the others to the right.
// Requires: a row at least, and as many cells in each.
std::string in_columns(const std::vector<Cells>& rows);

}  // namespace speedo
