#include <algorithm>
#include <cstdio>

#include "cli/arguments.hpp"
#include "cli/flags/speedo_flags.hpp"
#include "cli/manual/config_report.hpp"
#include "cli/manual/config_template.hpp"
#include "cli/options/program_table.hpp"
#include "cli/options/read_options.hpp"
#include "main/commands.hpp"

namespace speedo {

namespace {

const ProgramEntry* find_program(const std::string& word) {
  for (const ProgramEntry& entry : program_table()) {
    if (entry.section == word || entry.name == word) return &entry;
  }
  return nullptr;
}

Error unknown_program(const std::string& word) {
  std::vector<std::string> names;
  std::string list;
  for (const ProgramEntry& entry : program_table()) {
    names.emplace_back(entry.section);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  const std::string near = nearest(word, names);
  return {ErrorCode::kUsage, "'" + word + "' is no program of SpeeDO" +
                                 (near.empty() ? "" : ", did you mean " + near + "?") +
                                 " (known are " + list + ")"};
}

// --json behind the program's name is meant for what is shown as well; a program that has no such
// flag does not get it.
bool take_json(const ProgramEntry& entry, std::vector<std::string>& arguments) {
  const auto flags_end = std::ranges::find(arguments, "--");
  const auto asks = [](const std::string& each) { return each == "--json" || each == "-json"; };
  if (std::none_of(arguments.begin(), flags_end, asks)) return false;
  if (find_option("json", entry.program) == nullptr) {
    arguments.erase(std::remove_if(arguments.begin(), flags_end, asks), flags_end);
  }
  return true;
}

// What a program's own command line, the environment and the file come to.
Result<int> show(const ProgramEntry& entry, std::vector<std::string> arguments, bool as_json) {
  as_json = take_json(entry, arguments) || as_json;
  OptionValues values(entry.program);
  SPEEDO_ASSIGN(const Parsed parsed, read_some_options(fold_speedo(arguments), values));
  if (parsed == Parsed::kDone) return 0;
  const std::string file = config_file_of(values);
  std::printf("%s\n", (as_json ? config_json(values, file) : config_table(values, file)).c_str());
  return 0;
}

}  // namespace

Result<int> config_command(const CommandLine& line) {
  const auto program =
      std::find_if_not(line.arguments.begin(), line.arguments.end(), looks_like_flag);
  OptionValues values(Program::kConfig);
  SPEEDO_ASSIGN(const Parsed parsed, read_command_line({line.arguments.begin(), program}, values));
  if (parsed == Parsed::kDone) return 0;
  bool as_json = false, wants_template = false;
  values.get("json", as_json);
  values.get("template", wants_template);
  if (wants_template) {
    std::fputs(config_template().c_str(), stdout);
    return 0;
  }
  if (program == line.arguments.end()) {
    return Error{ErrorCode::kUsage,
                 "whose options? Give a program: speedo config run (see --help)"};
  }
  const ProgramEntry* entry = find_program(*program);
  if (entry == nullptr) return unknown_program(*program);
  return show(*entry, {program + 1, line.arguments.end()}, as_json);
}

}  // namespace speedo
