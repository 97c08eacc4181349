#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/options/option.hpp"
#include "cli/options/toml_parse.hpp"

namespace speedo {

// Error: kConfig for what is no TOML, with line and column; for a file that cannot be read, that of
// reading. `name` stands before it ("--hybrid-file stages.toml").
Result<toml::table> read_toml_file(const std::string& path, const std::string& name);
// The same of one that nobody named: also the errors of read_own_file().
Result<toml::table> read_own_toml_file(const std::string& path, const std::string& name);

// The table's keys with their values as they were written: a table is sorted by name.
struct TomlEntry {
  std::string key;
  const toml::node* value = nullptr;
  std::string place;
};
std::vector<TomlEntry> entries_of(const toml::table& table, const std::string& path);

// The value as the option's text on a command line. A switch takes true or false, a list of texts
// stands for one with commas. Error: kConfig, with the entry's place.
Result<std::string> option_text(const TomlEntry& entry, const Option& option);

}  // namespace speedo
