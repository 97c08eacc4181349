// `speedo manual` and `speedo completion`: texts that the build installs.

#include <cstdio>

#include "cli/manual/completion.hpp"
#include "cli/manual/manual_page.hpp"
#include "cli/options/read_options.hpp"
#include "main/commands.hpp"

namespace speedo {

Result<int> manual_command(const CommandLine& line) {
  OptionValues values(Program::kManual);
  SPEEDO_ASSIGN(const Parsed parsed, read_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  std::string page;
  values.get("page", page);
  for (const ProgramEntry& entry : program_table()) {
    if (entry.section == page) std::fputs(manual_page(entry).c_str(), stdout);
  }
  return 0;
}

Result<int> completion_command(const CommandLine& line) {
  OptionValues values(Program::kCompletion);
  SPEEDO_ASSIGN(const Parsed parsed, read_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  std::string shell;
  values.get("shell", shell);
  std::fputs((shell == "zsh" ? zsh_completion() : bash_completion()).c_str(), stdout);
  return 0;
}

}  // namespace speedo
