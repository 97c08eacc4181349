#pragma once

#include <string>

#include "doctor/finding.hpp"

namespace speedo {

// A line a finding, "ok", "warning" or "PROBLEM" before it and the remedy below; then how many
// there are of each.
std::string to_text(const Findings& findings);
std::string to_json(const Findings& findings);

bool has_problem(const Findings& findings);

}  // namespace speedo
