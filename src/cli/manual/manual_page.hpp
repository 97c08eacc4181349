#pragma once

#include <string>
#include <vector>

#include "cli/options/program_table.hpp"

namespace speedo {

// A page of the manual, section 1, in the language of man(7).
struct ManualPage {
  std::string file;  // "speedo-run.1"
  std::string text;
};

std::string manual_page(const ProgramEntry& program);

// Of `speedo` itself: which programs there are.
std::string overview_page();

// The overview, then a page for each program.
std::vector<ManualPage> manual_pages();

}  // namespace speedo
