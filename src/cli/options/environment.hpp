#pragma once

#include <map>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

#include "cli/options/option_values.hpp"

namespace speedo {

// The variables whose names begin with SPEEDO_.
using Environment = std::map<std::string, std::string>;
Environment process_environment();

// The variable of an option: SPEEDO_MAX_ITER of "max-iter".
std::string variable_of(const Option& option);

// Gives `values` what the environment says. A variable of another program's option is left out, as
// is an empty one, and those that Kubernetes and Docker make of the names of services.
// Error: kUsage for one that is no option's, with the nearest that is, or for a wrong value.
Result<void> read_environment(const Environment& environment, OptionValues& values);

}  // namespace speedo
