#pragma once

#include <string>
#include <vector>

#include "cli/options/option_values.hpp"

namespace speedo {

// How a program logs; the same for all of them.
struct LogFlags {
  bool debug = false;
  std::string format = "glog-0.6";
};

LogFlags log_flags(const OptionValues& values);

// Before anything is logged.
void set_up_console(const LogFlags& flags);

// The flags as another of our programs takes them.
std::vector<std::string> to_arguments(const LogFlags& flags);

}  // namespace speedo
