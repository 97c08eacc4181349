#pragma once

#include <cstdint>

#include "cli/options/option_values.hpp"

namespace speedo {

// --on-nan and --nan-max: so many losses or contributions in a row that are not finite end
// training.
struct NonFiniteFlags {
  std::uint64_t max = 1;
};

NonFiniteFlags non_finite_flags(const OptionValues& values);

}  // namespace speedo
