#pragma once

#include <string>

#include <speedo/base/result.hpp>

#include "cli/options/option_values.hpp"

namespace speedo {

// Gives `values` what a TOML file says. Keys are names of options, in any spelling. Those at the
// top are for every program that has the option; those in a program's table ([master], [worker],
// [run],
// ...: program_table.hpp) for it alone, and go before the others.
// All of the file is checked, also what is for other programs; a name with several meanings may
// stand at the top if the program that reads it takes the value, or, if it has no such option, any
// does. Error: kConfig, with line and column, for what is no option, with the nearest that is, for
// a value that is wrong, or for an option that is given twice; that of reading for a file that
// cannot be read.
Result<void> read_config_file(const std::string& path, OptionValues& values);
// The same of one that nobody named: kRefused too, unless it is the user's own (own_file.hpp).
Result<void> read_own_config_file(const std::string& path, OptionValues& values);

}  // namespace speedo
