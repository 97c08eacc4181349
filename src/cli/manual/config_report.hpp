#pragma once

#include <string>

#include "cli/options/option_values.hpp"

namespace speedo {

// A program's options: where each value comes from, and the value, or in brackets what holds
// without one. No password is shown. `file`: the configuration file that was read; empty: none.
std::string config_table(const OptionValues& values, const std::string& file);
std::string config_json(const OptionValues& values, const std::string& file);

}  // namespace speedo
