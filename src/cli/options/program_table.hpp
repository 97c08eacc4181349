#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/option.hpp"

namespace speedo {

// What the help and the manual say of a program besides its options.
struct ProgramEntry {
  Program program;
  std::string_view name;     // as it is called: "speedo run"
  std::string_view section;  // its table in a configuration file: "run"
  std::string_view summary;  // one line
  std::string_view notes;    // behind the options: what else there is to know, examples
};

// Those that users call, in the order of the manual.
const std::vector<ProgramEntry>& program_table();
const ProgramEntry& entry_of(Program program);

}  // namespace speedo
