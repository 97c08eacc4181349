// `speedo manual` and `speedo completion`: texts that the build installs.

#include <cstdio>
#include <filesystem>

#include <speedo/base/file.hpp>

#include "cli/manual/completion.hpp"
#include "cli/manual/manual_page.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"

namespace speedo {

namespace {

Result<int> write_manual(const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);  // what is wrong, writing tells
  for (const ManualPage& page : manual_pages()) {
    SPEEDO_TRY(write_file_atomically(folder / page.file, page.text));
  }
  return 0;
}

}  // namespace

Result<int> manual_command(const CommandLine& line) {
  OptionValues values(Program::kManual);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  std::string page, folder;
  values.get("page", page);
  values.get("folder", folder);
  if (!folder.empty() && !page.empty()) {
    return Error{ErrorCode::kUsage, "--folder takes all pages: leave '" + page + "' out"};
  }
  if (!folder.empty()) return write_manual(folder);
  if (page.empty()) std::fputs(overview_page().c_str(), stdout);
  for (const ProgramEntry& entry : program_table()) {
    if (entry.section == page) std::fputs(manual_page(entry).c_str(), stdout);
  }
  return 0;
}

Result<int> completion_command(const CommandLine& line) {
  OptionValues values(Program::kCompletion);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  std::string shell;
  values.get("shell", shell);
  std::fputs((shell == "zsh" ? zsh_completion() : bash_completion()).c_str(), stdout);
  return 0;
}

}  // namespace speedo
