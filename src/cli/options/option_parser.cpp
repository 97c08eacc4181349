#include "cli/options/option_parser.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"
#include "cli/options/program_table.hpp"

namespace speedo {

namespace {

constexpr std::size_t kNameColumns = 34;
constexpr std::size_t kDescriptionColumns = 64;

// Breaks a description between words, so that the help fits a terminal.
std::string wrap(const std::string& text) {
  std::string result;
  std::size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column > 0 && column + 1 + word.size() > kDescriptionColumns) {
      result += '\n';
      column = 0;
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

// CLI11 shows the value that a flag without one has as "--resume{store}".
std::string without_implied_values(std::string help) {
  for (std::size_t open = help.find('{'); open != std::string::npos; open = help.find('{', open)) {
    const std::size_t close = help.find('}', open);
    if (close == std::string::npos) break;
    const std::size_t size = close + 1 - open;
    help.erase(open, size);
    // The column of a description on the same line stays where it is.
    const std::size_t gap = help.find("  ", open);
    if (gap != std::string::npos && gap < help.find('\n', open)) help.insert(gap, size, ' ');
  }
  return help;
}

// Whether a value has to follow the flag.
bool needs_value(const Option& option) {
  return option.type.kind != ValueKind::kSwitch && option.type.kind != ValueKind::kOptionalText;
}

// CLI11's parser for the options of one program.
class Parser {
 public:
  explicit Parser(Program program, MissingArgument missing = MissingArgument::kRefused)
      : missing_(missing) {
    for (const Option* option : options_of(program)) handles_.emplace_back(option, add(*option));
    app_.set_help_flag();
  }

  CLI::App& app() { return app_; }

  // Gives `values` what was read from `spelled`. Error: kUsage for a value that is wrong.
  Result<void> store(const std::vector<std::string>& spelled, OptionValues& values) const {
    for (const auto& [option, handle] : handles_) {
      if (handle->count() == 0) continue;
      OptionValue value{
          .option = option, .source = Source::kFlag, .origin = name_in(spelled, *option)};
      for (const std::string& text : handle->results()) {
        if (const auto wrong = value_error(*option, text)) {
          return Error{ErrorCode::kUsage, value.origin + ": " + *wrong};
        }
        value.texts.push_back(canonical_value(*option, text));
      }
      values.set(std::move(value));
    }
    return {};
  }

 private:
  // Which of the option's names was written.
  static std::string name_in(const std::vector<std::string>& spelled, const Option& option) {
    if (option.place != OptionPlace::kFlag) return std::string(option.name);
    for (const std::string_view each : names_of(option)) {
      const std::string flag = "--" + std::string(each);
      for (const std::string& argument : spelled) {
        if (argument == flag || argument.starts_with(flag + "=")) return flag;
      }
    }
    return "--" + std::string(option.name);
  }

  CLI::Option* add(const Option& option) {
    CLI::Option* handle =
        option.place == OptionPlace::kFlag ? add_flag(option) : add_argument(option);
    handle->description(wrap(describe(option)));
    if (!option.type.label.empty()) handle->type_name(std::string(option.type.label));
    return handle;
  }

  CLI::Option* add_argument(const Option& option) {
    CLI::Option* handle = app_.add_option(std::string(option.name));
    if (option.place == OptionPlace::kArguments) handle->expected(1, -1)->allow_extra_args();
    return handle->required(option.required && missing_ == MissingArgument::kRefused);
  }

  CLI::Option* add_flag(const Option& option) {
    std::string names;
    for (const std::string_view name : names_of(option)) {
      names += (names.empty() ? "--" : ",--") + std::string(name);
    }
    if (!option.type.implied.empty()) names += "{" + std::string(option.type.implied) + "}";
    CLI::Option* handle = needs_value(option) ? app_.add_option(names) : app_.add_flag(names);
    return handle->group(std::string(option.group));
  }

  const MissingArgument missing_;
  CLI::App app_;
  std::vector<std::pair<const Option*, CLI::Option*>> handles_;
};

std::string one_line(const std::string& text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

// Of arguments without a flag the name alone says little.
std::string missing(const CLI::App& app, const CLI::RequiredError& error) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || !option->get_required() || option->count() > 0) continue;
    std::string description = option->get_description();
    std::replace(description.begin(), description.end(), '\n', ' ');
    return "the argument '" + option->get_name(true) + "' is missing: " + description;
  }
  return one_line(error.what());
}

// An argument that belongs to no flag, and what it may have been meant for.
std::optional<std::string> stray_argument(const CLI::App& app, Program program) {
  const std::vector<std::string> strays = app.remaining();
  if (strays.empty() || strays.front() == "--") return std::nullopt;
  for (const Option* option : options_of(program)) {
    const std::string flag = "--" + std::string(option->name);
    if (!option->required || option->place != OptionPlace::kFlag || app.count(flag) > 0) continue;
    return "'" + strays.front() + "' is not a flag: write " + flag + " " + strays.front() + "?";
  }
  return "'" + strays.front() + "' belongs to no flag";
}

// An empty value is a value: for Caffe's -stage and -weights it is the default. A flag that must be
// given must say something.
Result<void> check_empty_value(const std::string& name, const Option& option) {
  if (option.type.kind == ValueKind::kSwitch) {
    return Error{ErrorCode::kUsage, name + " takes no value: write it without '='"};
  }
  if (!option.required) return {};
  return Error{ErrorCode::kUsage, "flag " + name + " needs a value that is not empty"};
}

// What the parser would refuse, or take, without telling how to write it.
Result<void> check_spelling(Program program, const std::vector<std::string>& spelled) {
  std::set<const Option*> given;
  for (std::size_t i = 0; i < spelled.size() && spelled[i] != "--"; ++i) {
    if (!looks_like_flag(spelled[i])) continue;
    const std::string name = spelled[i].substr(0, spelled[i].find('='));
    const Option* option = find_option(name, program);
    if (option == nullptr) continue;
    if (option->type.kind != ValueKind::kSwitch && !given.insert(option).second) {
      return Error{ErrorCode::kUsage, name + " is given twice: give it once"};
    }
    if (spelled[i] == "--resume=") {
      return Error{ErrorCode::kUsage, "--resume= needs a value: auto or a file"};
    }
    if (spelled[i] == "--resume" && i + 1 < spelled.size() && !looks_like_flag(spelled[i + 1])) {
      return Error{ErrorCode::kUsage, "--resume takes its value behind '=': write --resume=" +
                                          spelled[i + 1]};
    }
    if (spelled[i] == name + "=") SPEEDO_TRY(check_empty_value(name, *option));
  }
  return {};
}

// The arguments as CLI11 reads them, the last one first. It takes "--name=" for a flag whose value
// is the next argument, so an empty value becomes an argument of its own.
std::vector<std::string> for_parser(const std::vector<std::string>& spelled) {
  std::vector<std::string> arguments;
  bool flags_ended = false;
  for (const std::string& argument : spelled) {
    flags_ended = flags_ended || argument == "--";
    if (!flags_ended && looks_like_flag(argument) && argument.find('=') == argument.size() - 1) {
      arguments.push_back(argument.substr(0, argument.size() - 1));
      arguments.emplace_back();
    } else {
      arguments.push_back(argument);
    }
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

std::vector<FlagName> flags_of(Program program) {
  std::vector<FlagName> flags = {{"help", false}, {"h", false}, {"version", false}};
  for (const Option* option : options_of(program)) {
    if (option->place != OptionPlace::kFlag) continue;
    for (const std::string_view name : names_of(*option)) {
      flags.push_back({std::string(name), needs_value(*option)});
    }
  }
  return flags;
}

Result<void> read_spelled(const std::vector<std::string>& spelled, OptionValues& values,
                          MissingArgument missing_argument) {
  const Program program = values.program();
  SPEEDO_TRY(check_spelling(program, spelled));
  Parser parser(program, missing_argument);
  CLI::App& app = parser.app();
  try {
    app.parse(for_parser(spelled));
  } catch (const CLI::ParseError& error) {
    if (const auto stray = stray_argument(app, program)) return Error{ErrorCode::kUsage, *stray};
    const auto* required = dynamic_cast<const CLI::RequiredError*>(&error);
    return Error{ErrorCode::kUsage,
                 required != nullptr ? missing(app, *required) : one_line(error.what())};
  }
  return parser.store(spelled, values);
}

bool asks_for(const std::vector<std::string>& spelled, const char* flag) {
  const auto end = std::find(spelled.begin(), spelled.end(), "--");
  return std::find(spelled.begin(), end, flag) != end;
}

}  // namespace

std::string help_of(Program program) {
  const ProgramEntry& entry = entry_of(program);
  Parser parser(program);
  CLI::App& app = parser.app();
  app.name(std::string(entry.name));
  app.description(std::string(entry.summary));
  app.footer(std::string(entry.notes));
  app.add_flag("--version")->description("Print the version and exit")->group("Other");
  app.set_help_flag("-h,--help", "Print this help and exit")->group("Other");
  app.get_formatter()->column_width(kNameColumns);
  app.get_formatter()->label("REQUIRED", "(required)");
  for (const Option* option : options_of(program)) {
    const std::string dashes = option->place == OptionPlace::kFlag ? "--" : "";
    app.get_option(dashes + std::string(option->name))->required(option->required);
  }
  return without_implied_values(app.help());
}

Result<Parsed> read_command_line(const std::vector<std::string>& arguments, OptionValues& values,
                                 MissingArgument missing) {
  const Program program = values.program();
  SPEEDO_ASSIGN(const std::vector<std::string> spelled,
                normalize_arguments(arguments, flags_of(program)));
  if (asks_for(spelled, "--version")) {
    std::printf("%s\n", version().c_str());
    return Parsed::kDone;
  }
  if (asks_for(spelled, "--help") || asks_for(spelled, "--h")) {
    std::fputs(help_of(program).c_str(), stdout);
    return Parsed::kDone;
  }
  if (auto read = read_spelled(spelled, values, missing); !read) {
    return Error{read.error().code, read.error().message + " (see --help)"};
  }
  return Parsed::kRun;
}

Result<void> read_flags(const std::vector<std::string>& arguments, OptionValues& values) {
  SPEEDO_ASSIGN(const std::vector<std::string> spelled,
                normalize_arguments(arguments, flags_of(values.program())));
  return read_spelled(spelled, values, MissingArgument::kRefused);
}

std::string version() { return "speedo " SPEEDO_VERSION; }

}  // namespace speedo
