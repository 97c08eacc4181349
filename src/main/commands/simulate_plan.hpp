#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// `speedo simulate --cluster FILE` and `speedo simulate --calibrate`: what each schedule would do
// on a cluster. Returns the exit code.
Result<int> simulate_plan(const std::vector<std::string>& arguments);

}  // namespace speedo
