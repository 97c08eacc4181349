#include "cli/flags/non_finite_flags.hpp"

#include <string>

namespace speedo {

NonFiniteFlags non_finite_flags(const OptionValues& values) {
  NonFiniteFlags flags;
  std::string choice;
  values.get("on-nan", choice);
  if (choice == "skip") values.get("nan-max", flags.max);
  return flags;
}

}  // namespace speedo
