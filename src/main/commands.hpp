#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/process_secrets.hpp"

namespace speedo {

// What a command is started with.
struct CommandLine {
  std::vector<std::string> arguments;  // behind its name
  const ProcessSecrets& secrets;       // taken out of arguments and environment
};

// A command of `speedo`: reads its arguments, works, prints its result. Returns the exit code.
using CommandFunction = Result<int> (*)(const CommandLine& line);

Result<int> run_command(const CommandLine& line);
Result<int> launch_command(const CommandLine& line);
Result<int> train_command(const CommandLine& line);
Result<int> test_command(const CommandLine& line);
Result<int> time_command(const CommandLine& line);
Result<int> net_command(const CommandLine& line);
Result<int> convert_command(const CommandLine& line);
Result<int> mean_command(const CommandLine& line);
Result<int> convert_imageset_command(const CommandLine& line);
Result<int> compute_image_mean_command(const CommandLine& line);
Result<int> upgrade_net_proto_text_command(const CommandLine& line);
Result<int> upgrade_net_proto_binary_command(const CommandLine& line);
Result<int> upgrade_solver_proto_text_command(const CommandLine& line);
Result<int> extract_features_command(const CommandLine& line);
Result<int> device_query_command(const CommandLine& line);
Result<int> parse_log_command(const CommandLine& line);
Result<int> classify_command(const CommandLine& line);
Result<int> plot_log_command(const CommandLine& line);
Result<int> draw_net_command(const CommandLine& line);
Result<int> export_command(const CommandLine& line);
Result<int> import_command(const CommandLine& line);
Result<int> simulate_command(const CommandLine& line);
Result<int> doctor_command(const CommandLine& line);
Result<int> status_command(const CommandLine& line);
Result<int> jobs_command(const CommandLine& line);
Result<int> token_command(const CommandLine& line);
Result<int> cert_command(const CommandLine& line);
Result<int> config_command(const CommandLine& line);
Result<int> completion_command(const CommandLine& line);
Result<int> manual_command(const CommandLine& line);

struct CommandEntry {
  const char* name;
  const char* summary;
  CommandFunction function;
};
const std::vector<CommandEntry>& commands();

// `caffe ARGUMENTS...`: the commands and flags of Caffe's own program, by those above. Returns the
// exit code.
int caffe_main(const std::vector<std::string>& arguments, const ProcessSecrets& secrets);

// `speedo ARGUMENTS...`: finds the command, runs it, reports its error. Returns the exit code.
int speedo_main(const std::vector<std::string>& arguments, const ProcessSecrets& secrets);

}  // namespace speedo
