#pragma once

#include <string>

#include "cli/options/program_table.hpp"

namespace speedo {

// A page of the manual, section 1, in the language of man(7).
std::string manual_page(const ProgramEntry& program);

// "speedo-run.1".
std::string manual_file(const ProgramEntry& program);

}  // namespace speedo
