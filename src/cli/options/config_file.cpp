#include "cli/options/config_file.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "cli/arguments.hpp"
#include "cli/options/option_error.hpp"
#include "cli/options/program_table.hpp"
#include "cli/options/toml_file.hpp"

namespace speedo {

namespace {

Error bad_entry(const std::string& place, const std::string& what) {
  return {ErrorCode::kConfig, place + ": " + what};
}

bool is_for_files(const Option& option) {
  return option.place == OptionPlace::kFlag && option.name != "config" &&
         option.name != "no-config";
}

Error unknown_key(const TomlEntry& entry, const std::vector<Program>& programs,
                  const std::string& owner) {
  std::set<std::string> known;
  for (const Program program : programs) {
    const Option* argument = find_option(entry.key, program);
    if (argument != nullptr) {
      return bad_entry(entry.place, "'" + entry.key + "' is an argument of " +
                                        std::string(entry_of(program).name) +
                                        ", which cannot stand in a configuration file");
    }
    for (const Option* option : options_of(program)) {
      if (is_for_files(*option)) known.emplace(option->name);
    }
  }
  const std::string near = nearest(entry.key, {known.begin(), known.end()});
  return bad_entry(entry.place, "'" + entry.key + "' is no option of " + owner +
                              (near.empty() ? "" : ", did you mean " + near + "?"));
}

// The value as the option takes it. Error: kConfig.
Result<std::string> value_of(const TomlEntry& entry, const Option& option) {
  SPEEDO_ASSIGN(const std::string text, option_text(entry, option));
  SPEEDO_TRY(check_value(option, text, entry.place + ": " + entry.key, ErrorCode::kConfig));
  return canonical_value(option, text);
}

// Reads one table of a file: its keys are for `programs`.
class TableReader {
 public:
  TableReader(const std::vector<Program>& programs, std::string owner, Source source,
              OptionValues& values)
      : programs_(programs), owner_(std::move(owner)), source_(source), values_(values) {}

  Result<void> read(const TomlEntry& entry) {
    std::vector<Meaning> meanings;
    for (const Program program : programs_) {
      const Option* option = find_option(entry.key, program);
      if (option != nullptr && option->place == OptionPlace::kFlag)
        meanings.push_back({program, option});
    }
    if (meanings.empty()) return unknown_key(entry, programs_, owner_);
    for (const Meaning& meaning : meanings) SPEEDO_TRY(check_once(entry, *meaning.option));
    for (const Meaning& meaning : meanings) {
      if (meaning.program == values_.program()) return take(entry, meaning, meanings);
    }
    if (taker(entry, meanings) != nullptr) return {};
    return value_of(entry, *meanings.front().option).error();
  }

 private:
  // An option of that name.
  struct Meaning {
    Program program;
    const Option* option;
  };

  Result<void> check_once(const TomlEntry& entry, const Option& option) {
    if (!is_for_files(option)) {
      return bad_entry(entry.place, "'" + entry.key + "' cannot stand in a configuration file");
    }
    const auto [before, is_first] = given_.emplace(&option, entry.place);
    if (is_first || before->second == entry.place) return {};
    return bad_entry(entry.place,
                     "'" + entry.key + "' is given twice: before at " + before->second);
  }

  // The first program that the value is right for; null: none.
  static const ProgramEntry* taker(const TomlEntry& entry, const std::vector<Meaning>& meanings) {
    for (const Meaning& meaning : meanings) {
      if (value_of(entry, *meaning.option)) return &entry_of(meaning.program);
    }
    return nullptr;
  }

  Result<void> take(const TomlEntry& entry, const Meaning& own,
                    const std::vector<Meaning>& meanings) {
    auto text = value_of(entry, *own.option);
    if (!text) {
      Error error = std::move(text).error();
      if (const ProgramEntry* other = taker(entry, meanings); other != nullptr) {
        error.message += " (" + std::string(entry_of(own.program).name) +
                         " reads it so; in the table [" + std::string(other->section) +
                         "] it would be for " + std::string(other->name) + " alone)";
      }
      return error;
    }
    values_.set({.option = own.option,
                 .texts = {std::move(*text)},
                 .source = source_,
                 .origin = entry.place});
    return {};
  }

  const std::vector<Program>& programs_;
  const std::string owner_;
  const Source source_;
  OptionValues& values_;
  std::map<const Option*, std::string> given_;  // by the place of the key
};

std::vector<Program> all_programs() {
  std::vector<Program> programs;
  for (const ProgramEntry& entry : program_table()) programs.push_back(entry.program);
  return programs;
}

// "[[run]]", where "[run]" is meant.
Result<void> check_no_list(const TomlEntry& entry) {
  const toml::array* list = entry.value->as_array();
  if (list == nullptr || !list->is_array_of_tables()) return {};
  for (const ProgramEntry& program : program_table()) {
    if (entry.key != program.section) continue;
    return bad_entry(entry.place, "[[" + entry.key + "]] is a list of tables: write [" +
                                      entry.key + "], once");
  }
  return {};
}

Result<void> read_section(const TomlEntry& section, const std::string& path,
                          OptionValues& values) {
  std::vector<std::string> names;
  for (const ProgramEntry& entry : program_table()) {
    names.emplace_back(entry.section);
    if (section.key != entry.section) continue;
    const std::vector<Program> programs = {entry.program};
    TableReader reader(programs, std::string(entry.name), Source::kSection, values);
    for (const TomlEntry& key : entries_of(*section.value->as_table(), path)) {
      SPEEDO_TRY(reader.read(key));
    }
    return {};
  }
  const std::string near = nearest(section.key, names);
  return bad_entry(section.place, "[" + section.key + "] is no program of SpeeDO" +
                                (near.empty() ? "" : ", did you mean [" + near + "]?"));
}

std::string name_of_file(const std::string& path) { return "the configuration file " + path; }

Result<void> read_config(const toml::table& table, const std::string& path, OptionValues& values) {
  const std::vector<TomlEntry> entries = entries_of(table, path);
  const std::vector<Program> programs = all_programs();
  TableReader common(programs, "SpeeDO", Source::kFile, values);
  for (const TomlEntry& entry : entries) {
    if (entry.value->is_table()) continue;
    SPEEDO_TRY(check_no_list(entry));
    SPEEDO_TRY(common.read(entry));
  }
  for (const TomlEntry& entry : entries) {
    if (entry.value->is_table()) SPEEDO_TRY(read_section(entry, path, values));
  }
  return {};
}

}  // namespace

Result<void> read_config_file(const std::string& path, OptionValues& values) {
  SPEEDO_ASSIGN(const toml::table table, read_toml_file(path, name_of_file(path)));
  return read_config(table, path, values);
}

Result<void> read_own_config_file(const std::string& path, OptionValues& values) {
  SPEEDO_ASSIGN(const toml::table table, read_own_toml_file(path, name_of_file(path)));
  return read_config(table, path, values);
}

}  // namespace speedo
