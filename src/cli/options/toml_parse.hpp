#pragma once

#include <string>

#include <speedo/base/result.hpp>

#include "cli/options/toml.hpp"

namespace speedo {

// `path`: for messages. Error: kConfig for what is no TOML, with line and column.
Result<toml::table> parse_toml(const std::string& text, const std::string& path);

// "FILE:LINE:COLUMN".
std::string place_of(const std::string& path, const toml::source_position& at);

}  // namespace speedo
