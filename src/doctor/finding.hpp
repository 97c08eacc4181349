#pragma once

#include <string>
#include <vector>

namespace speedo {

enum class Health { kOk, kWarning, kProblem };

// What one check found.
struct Finding {
  std::string check;        // one or two words, always the same: "redis policy"
  Health health = Health::kOk;
  std::string what;         // what is there
  std::string remedy = {};  // what to do; empty where all is well
};
using Findings = std::vector<Finding>;

}  // namespace speedo
