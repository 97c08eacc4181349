#include "cli/command_line.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <sstream>

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"

namespace speedo {

namespace {

constexpr std::size_t kNameColumns = 34;
constexpr std::size_t kDescriptionColumns = 64;

std::vector<FlagName> flags_of(const CLI::App& app) {
  std::vector<FlagName> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back({name, option->get_items_expected_max() > 0});
    }
    for (const std::string& name : option->get_snames()) {
      flags.push_back({name, option->get_items_expected_max() > 0});
    }
  }
  return flags;
}

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

// A validator's description is for its error; in the help the kind of value is enough.
void tidy_help(CLI::App& app) {
  app.get_formatter()->column_width(kNameColumns);
  app.get_formatter()->label("REQUIRED", "(required)");
  for (CLI::Option* option : app.get_options()) {
    option->description(wrap(option->get_description()));
  }
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
std::optional<std::string> stray_argument(const CLI::App& app) {
  const std::vector<std::string> strays = app.remaining();
  if (strays.empty() || strays.front() == "--") return std::nullopt;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required() || option->get_positional() || option->count() > 0) continue;
    return "'" + strays.front() + "' is not a flag: write " + option->get_name() + " " +
           strays.front() + "?";
  }
  return "'" + strays.front() + "' belongs to no flag";
}

// An empty value is a value: for Caffe's -stage and -weights it is the default. A flag that must be
// given must say something.
Result<void> check_empty_value(const std::string& name, const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) {
    return Error{ErrorCode::kUsage, name + " takes no value: write it without '='"};
  }
  if (!option.get_required()) return {};
  return Error{ErrorCode::kUsage, "flag " + name + " needs a value that is not empty"};
}

// What the parser would refuse, or take, without telling how to write it.
Result<void> check_spelling(const CLI::App& app, const std::vector<std::string>& spelled) {
  std::set<const CLI::Option*> given;
  for (std::size_t i = 0; i < spelled.size() && spelled[i] != "--"; ++i) {
    if (!looks_like_flag(spelled[i])) continue;
    const std::string name = spelled[i].substr(0, spelled[i].find('='));
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option == nullptr) continue;
    const bool once = option->get_items_expected_max() == 1 &&
                      option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
    if (once && !given.insert(option).second) {
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

}  // namespace

Result<Parsed> parse(CLI::App& app, const std::vector<std::string>& arguments,
                     std::vector<std::string>* normalized) {
  bool want_version = false;
  app.add_flag("--version", want_version, "Print the version and exit")->group("Other");
  app.set_help_flag("-h,--help", "Print this help and exit")->group("Other");
  tidy_help(app);
  SPEEDO_ASSIGN(std::vector<std::string> spelled, normalize_arguments(arguments, flags_of(app)));
  for (std::string& argument : spelled) {
    if (argument == "--h") argument = "-h";
  }
  if (normalized != nullptr) *normalized = spelled;
  if (std::find(spelled.begin(), spelled.end(), "--version") != spelled.end()) {
    std::printf("%s\n", version().c_str());
    return Parsed::kDone;
  }
  SPEEDO_TRY(check_spelling(app, spelled));
  try {
    app.parse(for_parser(spelled));
  } catch (const CLI::CallForHelp&) {
    std::fputs(without_implied_values(app.help()).c_str(), stdout);
    return Parsed::kDone;
  } catch (const CLI::ParseError& error) {
    if (const auto stray = stray_argument(app)) {
      return Error{ErrorCode::kUsage, *stray + " (see --help)"};
    }
    const auto* required = dynamic_cast<const CLI::RequiredError*>(&error);
    return Error{ErrorCode::kUsage, (required != nullptr ? missing(app, *required)
                                                         : one_line(error.what())) +
                                        " (see --help)"};
  }
  return Parsed::kRun;
}

Result<void> parse_flags(CLI::App& app, const std::vector<std::string>& arguments) {
  app.set_help_flag();
  SPEEDO_ASSIGN(std::vector<std::string> spelled, normalize_arguments(arguments, flags_of(app)));
  SPEEDO_TRY(check_spelling(app, spelled));
  try {
    app.parse(for_parser(spelled));
  } catch (const CLI::ParseError& error) {
    return Error{ErrorCode::kUsage, one_line(error.what())};
  }
  return {};
}

std::vector<std::string> arguments_of(int argc, char** argv) { return {argv + 1, argv + argc}; }

std::string version() { return "speedo " SPEEDO_VERSION; }

}  // namespace speedo
