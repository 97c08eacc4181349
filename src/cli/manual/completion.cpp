#include "cli/manual/completion.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/options/program_table.hpp"

namespace speedo {

namespace {

constexpr const char* kBashFunctions = R"sh(
_speedo_complete() {
  local program="$1" word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
  if [[ "$word" == "=" ]]; then
    word=""
  elif [[ "$before" == "=" ]]; then
    before="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  local words
  words="$(_speedo_words "$program" "$before")"
  if [[ -n "$words" ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$(_speedo_flags "$program")" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}

_speedo() {
  case "${1##*/}" in
    speedo-master) _speedo_complete master ;;
    speedo-worker) _speedo_complete worker ;;
    *)
      if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "$(_speedo_commands)" -- "${COMP_WORDS[1]}"))
      else
        _speedo_complete "${COMP_WORDS[1]}"
      fi
      ;;
  esac
}
complete -o filenames -F _speedo speedo speedo-master speedo-worker
)sh";

constexpr const char* kZshFunctions = R"sh(
_speedo() {
  case "$service" in
    speedo-master) _speedo_master ;;
    speedo-worker) _speedo_worker ;;
    *)
      if ((CURRENT == 2)); then
        _values command $(_speedo_commands)
      else
        local command="$words[2]"
        shift words
        ((CURRENT--))
        (($+functions[_speedo_$command])) && _speedo_$command
      fi
      ;;
  esac
}
_speedo "$@"
)sh";

bool is_command(const ProgramEntry& entry) { return entry.name.starts_with("speedo "); }

// The programs behind one word of a command line: the proof and the planner are one command.
std::vector<const ProgramEntry*> called(std::string_view word) {
  std::vector<const ProgramEntry*> result;
  for (const ProgramEntry& entry : program_table()) {
    const std::string_view own =
        entry.program == Program::kPlan ? std::string_view("simulate") : entry.section;
    if (own == word) result.push_back(&entry);
  }
  return result;
}

std::vector<std::string> called_words() {
  std::vector<std::string> words;
  for (const ProgramEntry& entry : program_table()) {
    if (entry.program != Program::kPlan) words.emplace_back(entry.section);
  }
  return words;
}

std::vector<const Option*> flags_behind(std::string_view word) {
  std::vector<const Option*> flags;
  for (const ProgramEntry* entry : called(word)) {
    for (const Option* option : options_of(entry->program)) {
      const bool is_new = std::none_of(flags.begin(), flags.end(), [&](const Option* other) {
        return other->name == option->name;
      });
      if (option->place == OptionPlace::kFlag && is_new) flags.push_back(option);
    }
  }
  return flags;
}

std::string command_words() {
  std::string text = "\n_speedo_commands() {\n  echo \"";
  for (const ProgramEntry& entry : program_table()) {
    if (!is_command(entry) || entry.program == Program::kPlan) continue;
    text += (text.ends_with('"') ? "" : " ") + std::string(entry.section);
  }
  return text + "\"\n}\n";
}

std::string bash_flags() {
  std::string text = "\n_speedo_flags() {\n  case \"$1\" in\n";
  for (const std::string& word : called_words()) {
    text += fmt::format("    {}) echo \"--help --version", word);
    for (const Option* option : flags_behind(word)) text += fmt::format(" --{}", option->name);
    text += "\" ;;\n";
  }
  return text + "  esac\n}\n";
}

std::string bash_words() {
  std::string text = "\n_speedo_words() {\n  case \"$1 $2\" in\n";
  for (const std::string& word : called_words()) {
    for (const Option* option : flags_behind(word)) {
      if (option->type.words.empty()) continue;
      text += fmt::format("    \"{} --{}\") echo \"{}\" ;;\n", word, option->name,
                          option->type.words);
    }
  }
  return text + "  esac\n}\n";
}

// Within a description of zsh's _arguments, in single quotes.
std::string zsh_escape(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return result;
}

std::string zsh_argument(const Option& option) {
  const std::string help = zsh_escape(option.sentence);
  if (option.type.kind == ValueKind::kSwitch) {
    return fmt::format(" \\\n    '--{}[{}]'", option.name, help);
  }
  const std::string values = !option.type.words.empty()
                                 ? fmt::format("({})", option.type.words)
                             : option.type.kind == ValueKind::kFile ? "_files"
                                                                    : "";
  const std::string optional = option.type.kind == ValueKind::kOptionalText ? ":" : "";
  return fmt::format(" \\\n    '--{}=[{}]{}:{}:{}'", option.name, help, optional,
                     zsh_escape(option.type.label), values);
}

}  // namespace

std::string bash_completion() {
  return "# Completes SpeeDO's command lines in bash; `speedo completion bash` prints it.\n" +
         command_words() + bash_flags() + bash_words() + kBashFunctions;
}

std::string zsh_completion() {
  std::string text =
      "#compdef speedo speedo-master speedo-worker\n"
      "# Completes SpeeDO's command lines in zsh; `speedo completion zsh` prints it.\n" +
      command_words();
  for (const std::string& word : called_words()) {
    text += fmt::format("\n_speedo_{}() {{\n  _arguments '--help[Print the help]'", word);
    for (const Option* option : flags_behind(word)) text += zsh_argument(*option);
    text += " \\\n    '*:file:_files'\n}\n";
  }
  return text + kZshFunctions;
}

}  // namespace speedo
