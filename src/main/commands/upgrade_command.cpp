// `speedo upgrade_net_proto_text`, `upgrade_net_proto_binary` and `upgrade_solver_proto_text`.

#include <string>

#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "cli/flags/caffe_flags.hpp"
#include "cli/report/console.hpp"
#include "core/prototxt.hpp"
#include "core/upgrade/upgrade.hpp"
#include "core/weight_file.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"

namespace speedo {

namespace {

struct UpgradeFiles {
  std::string input, output;
};

Result<void> upgrade_net_text(const UpgradeFiles& files) {
  SPEEDO_ASSIGN(const caffe::NetParameter net, read_net_prototxt(files.input));
  SPEEDO_TRY(write_file_atomically(files.output, to_prototxt(net)));
  SPEEDO_INFO("Wrote upgraded NetParameter text proto to {}", files.output);
  return {};
}

Result<void> upgrade_net_binary(const UpgradeFiles& files) {
  SPEEDO_ASSIGN(const caffe::NetParameter net, read_caffemodel(files.input));
  SPEEDO_TRY(write_caffemodel(files.output, net));
  SPEEDO_INFO("Wrote upgraded NetParameter binary proto to {}", files.output);
  return {};
}

Result<void> upgrade_solver_text(const UpgradeFiles& files) {
  SPEEDO_ASSIGN(const std::string text, read_file(files.input));
  caffe::SolverParameter solver;
  SPEEDO_TRY(parse_prototxt(text, files.input, solver));
  SPEEDO_TRY(upgrade_solver(solver));
  SPEEDO_TRY(write_file_atomically(files.output, to_prototxt(solver)));
  SPEEDO_INFO("Wrote upgraded SolverParameter text proto to {}", files.output);
  return {};
}

Result<int> upgrade(const CommandLine& line, Program program,
                    Result<void> (*function)(const UpgradeFiles&)) {
  OptionValues values(program);
  SPEEDO_ASSIGN(const Parsed parsed,
                read_program_options(from_gflags(line.arguments, program), values));
  if (parsed == Parsed::kDone) return 0;
  UpgradeFiles files;
  values.get("input", files.input);
  values.get("output", files.output);
  set_up_console(false);
  SPEEDO_TRY(function(files));
  return 0;
}

}  // namespace

Result<int> upgrade_net_proto_text_command(const CommandLine& line) {
  return upgrade(line, Program::kUpgradeNetText, upgrade_net_text);
}

Result<int> upgrade_net_proto_binary_command(const CommandLine& line) {
  return upgrade(line, Program::kUpgradeNetBinary, upgrade_net_binary);
}

Result<int> upgrade_solver_proto_text_command(const CommandLine& line) {
  return upgrade(line, Program::kUpgradeSolverText, upgrade_solver_text);
}

}  // namespace speedo
