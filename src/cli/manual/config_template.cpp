#include "cli/manual/config_template.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "cli/options/program_table.hpp"

namespace speedo {

namespace {

constexpr std::size_t kColumns = 100;

constexpr const char* kHead =
    "# Options of SpeeDO's programs. Each is shown with its default, or with an example of a "
    "value:\n"
    "# remove the '#' before a key to set it. A program reads this file if --config or "
    "SPEEDO_CONFIG\n"
    "# names it, or as speedo.toml in its working directory, if that is yours (or root's) and no "
    "other\n"
    "# user may write it. What a flag or a SPEEDO_ variable says goes before it; `speedo config "
    "PROGRAM`\n"
    "# shows what holds. Paths are relative to the working directory.\n"
    "#\n"
    "# Keys at the top are for every program that has an option of that name; those in the table "
    "of a\n"
    "# program for it alone, and go before the others.\n";

std::string comment(const std::string& text) {
  std::string result;
  std::istringstream words(text);
  std::size_t column = kColumns;
  for (std::string word; words >> word;) {
    if (column + 1 + word.size() > kColumns) {
      result += result.empty() ? "# " : "\n# ";
      column = 2;
    } else {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result + "\n";
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string whole_example(const Option& option) {
  return option.value.empty() ? std::to_string(std::max<std::int64_t>(option.type.min, 1))
                              : std::string(option.value);
}

// A value that the option takes.
std::string example(const Option& option) {
  const ValueType& type = option.type;
  switch (type.kind) {
    case ValueKind::kSwitch: return "true";
    case ValueKind::kWhole:
    case ValueKind::kThreads: return whole_example(option);
    case ValueKind::kNumber:
    case ValueKind::kAmount:
    case ValueKind::kPositive: return option.value.empty() ? "0.5" : std::string(option.value);
    case ValueKind::kSeconds:
      return option.value.empty() ? quoted("90s") : std::string(option.value);
    case ValueKind::kBytes: return quoted("20GB");
    case ValueKind::kWord:
      return quoted(option.value.empty() ? words_of(type.words).front() : option.value);
    case ValueKind::kOptionalText: return quoted("auto");
    case ValueKind::kFile:
    case ValueKind::kText: break;
  }
  if (!option.value.empty()) return quoted(option.value);
  return quoted(type.words.empty() ? type.label : words_of(type.words).front());
}

std::string key_of(const Option& option) {
  std::string key(option.name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string lines_of(const Option& option) {
  std::string text = describe(option);
  if (option.type.kind == ValueKind::kSeconds) text += ", in seconds";
  return comment(text) + "#" + key_of(option) + " = " + example(option) + "\n";
}

bool is_key(const Option& option) {
  return option.place == OptionPlace::kFlag && option.name != "config" &&
         option.name != "no-config";
}

// Of the programs that users call.
std::size_t programs_with(const Option& option) {
  return static_cast<std::size_t>(
      std::count_if(program_table().begin(), program_table().end(), [&](const ProgramEntry& entry) {
        return option.programs.contains(entry.program);
      }));
}

// A name that has several meanings is there with the first of them.
std::string common_keys() {
  std::string text, group;
  std::set<std::string_view> names;
  for (const Option& option : option_table()) {
    if (!is_key(option) || programs_with(option) < 2 || !names.insert(option.name).second) continue;
    if (option.group != group) text += "\n# --- " + std::string(option.group) + "\n";
    group = option.group;
    text += "\n" + lines_of(option);
  }
  return text;
}

std::string keys_of(const ProgramEntry& entry) {
  std::string text;
  for (const Option* option : options_of(entry.program)) {
    if (is_key(*option) && programs_with(*option) == 1) text += "\n" + lines_of(*option);
  }
  return text;
}

}  // namespace

std::string config_template() {
  std::string text = kHead + common_keys();
  for (const ProgramEntry& entry : program_table()) {
    const std::string keys = keys_of(entry);
    if (keys.empty()) continue;
    text += fmt::format("\n# --- {}{}\n[{}]\n", entry.name,
                        entry.program == Program::kPlan ? " --cluster or --calibrate" : "",
                        entry.section) +
            keys;
  }
  return text;
}

}  // namespace speedo
