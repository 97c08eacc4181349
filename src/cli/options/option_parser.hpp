#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/options/option_values.hpp"

namespace speedo {

// What a command does after its arguments were read.
enum class Parsed {
  kRun,   // go on
  kDone,  // help or version was printed
};

// What becomes of a command line without an argument that has no flag and has to be there.
enum class MissingArgument { kRefused, kBorne };

// Gives `values` what a command line says (without the program's name): every spelling of a flag
// (arguments.hpp), --help and --version. Whether a flag is missing is not looked at.
// Error: kUsage.
Result<Parsed> read_command_line(const std::vector<std::string>& arguments, OptionValues& values,
                                 MissingArgument missing = MissingArgument::kRefused);

// The same without --help and --version: flags that stand elsewhere than on a command line.
Result<void> read_flags(const std::vector<std::string>& arguments, OptionValues& values);

// The program's help. Requires: it has an entry in the table of programs.
std::string help_of(Program program);

std::string version();  // "speedo 0.1.0"

}  // namespace speedo
