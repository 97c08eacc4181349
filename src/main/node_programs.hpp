#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "main/process_secrets.hpp"

namespace speedo {

// speedo-master with these arguments (without the program's name), from start to end.
Result<void> master_program(const std::vector<std::string>& arguments,
                            const ProcessSecrets& secrets);
// speedo-worker likewise.
Result<void> worker_program(const std::vector<std::string>& arguments,
                            const ProcessSecrets& secrets);

}  // namespace speedo
