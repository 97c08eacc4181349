#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/process_secrets.hpp"

namespace speedo {

// speedo-master with these arguments (without the program's name), from start to end. Returns the
// exit code.
Result<int> master_program(const std::vector<std::string>& arguments,
                           const ProcessSecrets& secrets);
// speedo-worker likewise.
Result<int> worker_program(const std::vector<std::string>& arguments,
                           const ProcessSecrets& secrets);

}  // namespace speedo
