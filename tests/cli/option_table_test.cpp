#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <speedo/train/strategy.hpp>

#include "cli/compute_options.hpp"
#include "cli/manual/completion.hpp"
#include "cli/manual/config_report.hpp"
#include "cli/manual/config_template.hpp"
#include "cli/manual/manual_page.hpp"
#include "cli/options/config_file.hpp"
#include "cli/options/environment.hpp"
#include "cli/options/option_parser.hpp"
#include "cli/options/program_table.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

bool is_kebab(std::string_view name) {
  for (const char c : name) {
    if (std::islower(static_cast<unsigned char>(c)) == 0 && c != '-') return false;
  }
  return !name.empty() && name.front() != '-' && name.back() != '-';
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// The template with every key in force.
std::string without_marks(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    const bool is_key = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    result += (is_key ? line.substr(1) : line) + "\n";
  }
  return result;
}

bool may_stand_in_file(const Option& option) {
  return option.place == OptionPlace::kFlag && option.name != "config" &&
         option.name != "no-config";
}

TEST_CASE("Each row of the table of options is whole, and a program has a name once") {
  CHECK(option_table().size() > 140);
  for (const Option& option : option_table()) {
    INFO(option.name);
    CHECK(is_kebab(option.name));
    for (const std::string_view name : names_of(option)) CHECK(is_kebab(name));
    CHECK_FALSE(option.sentence.empty());
    CHECK((!option.sentence.ends_with('.') || option.sentence.ends_with("...")));
    CHECK((option.place != OptionPlace::kFlag || !option.group.empty()));
    CHECK((option.value.empty() || option.otherwise.empty()));
    CHECK((option.type.kind != ValueKind::kWord || !option.type.words.empty()));
    CHECK((option.type.kind != ValueKind::kSwitch || option.value.empty()));
    if (!option.value.empty()) {
      const std::string value(option.value);
      CHECK_FALSE(value_error(option, value));
      CHECK(canonical_value(option, value) == value);
    }
  }
  for (const ProgramEntry& entry : program_table()) {
    std::set<std::string_view> names;
    for (const Option* option : options_of(entry.program)) {
      for (const std::string_view name : names_of(*option)) {
        INFO(entry.name << " --" << name);
        CHECK(names.insert(name).second);
        CHECK(find_option(name, entry.program) == option);
      }
    }
  }
}

TEST_CASE("The help of --strategy names the schedules that there are") {
  const Option* option = find_option("strategy", Program::kMaster);
  REQUIRE(option != nullptr);
  const std::vector<std::string_view> words = words_of(option->type.words);
  REQUIRE(words.size() == strategy_registry().size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    CHECK(words[i] == strategy_registry()[i].name);
    CHECK(option->sentence.find(words[i]) != std::string_view::npos);
  }
}

TEST_CASE("A master's --device is what it tests on, and says who gives workers theirs") {
  const std::string_view sentence = find_option("device", Program::kMaster)->sentence;
  CHECK(sentence.find("master tests on") != std::string_view::npos);
  CHECK(sentence.find("speedo-worker") != std::string_view::npos);
  CHECK(find_option("device", Program::kWorker)->sentence != sentence);
}

TEST_CASE("Workers of a local cluster are as nice as the planner measures them") {
  const Option* option = find_option("compute-nice", Program::kRun);
  REQUIRE(option != nullptr);
  CHECK(option->value == std::to_string(kLocalComputeNice));
}

TEST_CASE("Every option is in the help, the manual, completion and what `speedo config` shows") {
  const std::string bash = bash_completion(), zsh = zsh_completion();
  for (const ProgramEntry& entry : program_table()) {
    const std::string help = help_of(entry.program), page = manual_page(entry);
    const OptionValues values(entry.program);
    const std::string table = config_table(values, ""), json = config_json(values, "");
    for (const Option* option : options_of(entry.program)) {
      const std::string name(option->name);
      INFO(entry.name << " " << name);
      CHECK(help.find(name) != std::string::npos);
      std::string escaped;
      for (const char c : name) escaped += c == '-' ? std::string("\\-") : std::string(1, c);
      CHECK(page.find(escaped) != std::string::npos);
      if (option->place != OptionPlace::kFlag) continue;
      CHECK(bash.find(" --" + name) != std::string::npos);
      CHECK(zsh.find("'--" + name) != std::string::npos);
      CHECK(table.find("  " + name + " ") != std::string::npos);
      CHECK(json.find("\"" + name + "\"") != std::string::npos);
    }
  }
}

TEST_CASE("With every key in force the template sets every option of every program") {
  const TempDir folder;
  const std::string path = (folder / "speedo.toml").string();
  std::ofstream(path) << without_marks(config_template());
  for (const ProgramEntry& entry : program_table()) {
    OptionValues values(entry.program);
    const auto read = read_config_file(path, values);
    INFO(entry.name << ": " << (read ? "" : read.error().message));
    REQUIRE(read);
    for (const OptionValue& value : values.all()) {
      INFO(value.option->name);
      const bool is_of_file = value.source == Source::kFile || value.source == Source::kSection;
      CHECK(is_of_file == may_stand_in_file(*value.option));
    }
  }
  std::ofstream(path) << config_template();
  OptionValues values(Program::kMaster);
  REQUIRE(read_config_file(path, values));
  for (const OptionValue& value : values.all()) CHECK(value.source == Source::kDefault);
}

TEST_CASE("conf/speedo.toml is the template") {
  CHECK(content_of("conf/speedo.toml") == config_template());
}

TEST_CASE("Every option has a variable of its own") {
  for (const ProgramEntry& entry : program_table()) {
    for (const Option* option : options_of(entry.program)) {
      if (option->place != OptionPlace::kFlag) continue;
      INFO(entry.name << " " << option->name);
      OptionValues values(entry.program);
      const std::string text = option->type.kind == ValueKind::kSwitch ? "true"
                               : option->type.kind == ValueKind::kWord
                                   ? std::string(words_of(option->type.words).back())
                                   : std::to_string(std::max<std::int64_t>(option->type.min, 1));
      const auto read = read_environment({{variable_of(*option), text}}, values);
      INFO((read ? "" : read.error().message));
      REQUIRE(read);
      CHECK(values.given(option->name));
    }
  }
}

TEST_CASE("Some program reads every option") {
  std::string sources;
  for (const char* folder : {"src/cli", "src/main"}) {
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
      if (each.path().extension() == ".cpp") sources += content_of(each.path());
    }
  }
  REQUIRE_FALSE(sources.empty());
  for (const Option& option : option_table()) {
    INFO(option.name);
    const bool is_argument = option.name == "program";
    CHECK((is_argument ||
           sources.find("get(\"" + std::string(option.name) + "\"") != std::string::npos));
  }
}

}  // namespace
}  // namespace speedo
