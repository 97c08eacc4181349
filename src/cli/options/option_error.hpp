#pragma once

#include <string>

#include <speedo/base/result.hpp>

#include "cli/options/option.hpp"

namespace speedo {

// Refuses a value that does not come from a command line. `origin`: what gives it, for the error.
// An address with a password in it is refused without showing it. Error: `code`.
Result<void> check_value(const Option& option, const std::string& text, const std::string& origin,
                         ErrorCode code);

}  // namespace speedo
