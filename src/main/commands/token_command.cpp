// `speedo token`: the secret that a master and its workers share.

#include "base/log.hpp"
#include "cli/report/console.hpp"
#include "gate/token_file.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"

namespace speedo {

Result<int> token_command(const CommandLine& line) {
  OptionValues values(Program::kToken);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  std::string file;
  values.get("file", file);
  set_up_console(false);
  SPEEDO_TRY(create_token_file(file));
  SPEEDO_INFO("Wrote a token to '{}'; give it to the master and all workers with --token-file",
              file);
  return 0;
}

}  // namespace speedo
