#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/options/environment.hpp"
#include "cli/options/option_parser.hpp"
#include "cli/options/option_values.hpp"

namespace speedo {

// Gives `values` what a program's user says: on the command line, else in the environment, else in
// a configuration file, which is the one that --config or SPEEDO_CONFIG names, or speedo.toml in
// the working directory. Prints help and version if they are asked for. Errors: kUsage, kConfig;
// kRefused if that speedo.toml may be another user's (own_file.hpp); kUsage too if a required
// option has no value.
Result<Parsed> read_options(const std::vector<std::string>& arguments, OptionValues& values,
                            const Environment& environment = process_environment());

// The same without what is required, for looking at a program's options.
Result<Parsed> read_some_options(const std::vector<std::string>& arguments, OptionValues& values,
                                 const Environment& environment = process_environment());

// For programs that others start: what holds is on their command line.
inline constexpr const char* kNoConfig = "--no-config";

// The configuration file that was read; empty: none.
std::string config_file_of(const OptionValues& values);

}  // namespace speedo
