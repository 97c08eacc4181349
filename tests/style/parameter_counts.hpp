#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace speedo {

// A function that a source declares or defines.
struct FunctionHead {
  std::string name;
  std::size_t line;  // of the name, from 1
  std::size_t parameters;
};

// The functions that the C++ source `text` declares or defines in namespaces and types, in order.
// Left out is what lies within bodies of functions: lambdas and local types.
std::vector<FunctionHead> function_heads(const std::string& text);

}  // namespace speedo
