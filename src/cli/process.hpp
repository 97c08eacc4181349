#pragma once

#include <functional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/process_secrets.hpp"

namespace speedo {

// A program from its arguments, without its name, to its exit code.
using ProgramBody = std::function<Result<int>(const std::vector<std::string>& arguments,
                                              const ProcessSecrets& secrets)>;

// All that main() does: runs `body` and returns its exit code, or that of its error, or of a result
// that could not be written to standard output, with a line that says so. Standard input, output
// and error are open in it, if only on /dev/null. What happens without room is said in
// cli/out_of_room.hpp, what becomes of exceptions that nothing catches in cli/uncaught.hpp.
int run_process(const char* program, int argc, char** argv, const ProgramBody& body);

}  // namespace speedo
