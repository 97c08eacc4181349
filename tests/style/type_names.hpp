#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace speedo {

// A class, struct, union or enumeration that is defined in a namespace which other sources see.
struct TypeDefinition {
  std::string name;  // with its namespaces: "speedo::RecordReader"
  std::size_t line;  // of the name, from 1
};

// The definitions in the C++ source `text`, in order. Left out are types within types or functions,
// those of anonymous namespaces, specialisations of templates and mere declarations. All branches
// of a preprocessor condition count.
std::vector<TypeDefinition> type_definitions(const std::string& text);

}  // namespace speedo
