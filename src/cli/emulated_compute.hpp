#pragma once

#include <string>

#include <speedo/base/result.hpp>

#include "train/trainer/emulated_learner.hpp"

namespace speedo {

// Reads "MS" or "MS:SPREAD": milliseconds of a step, 0 to an hour, and the percent that steps
// differ from it at most, 0 to 100. Error: kUsage, saying what is allowed.
Result<EmulatedCompute> parse_emulated_compute(const std::string& text);

}  // namespace speedo
