#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// A command of `speedo`: reads its arguments, works, prints its result. Returns the exit code.
using CommandFunction = Result<int> (*)(const std::vector<std::string>& arguments);

Result<int> run_command(const std::vector<std::string>& arguments);
Result<int> train_command(const std::vector<std::string>& arguments);
Result<int> test_command(const std::vector<std::string>& arguments);
Result<int> time_command(const std::vector<std::string>& arguments);
Result<int> net_command(const std::vector<std::string>& arguments);
Result<int> convert_command(const std::vector<std::string>& arguments);
Result<int> mean_command(const std::vector<std::string>& arguments);
Result<int> simulate_command(const std::vector<std::string>& arguments);
Result<int> config_command(const std::vector<std::string>& arguments);
Result<int> completion_command(const std::vector<std::string>& arguments);
Result<int> manual_command(const std::vector<std::string>& arguments);

struct CommandEntry {
  const char* name;
  const char* summary;
  CommandFunction function;
};
const std::vector<CommandEntry>& commands();

// `speedo ARGUMENTS...`: finds the command, runs it, reports its error. Returns the exit code.
int speedo_main(const std::vector<std::string>& arguments);

}  // namespace speedo
