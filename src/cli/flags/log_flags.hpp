#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace speedo {

// How a program logs; the same for all of them.
struct LogFlags {
  bool debug = false;
  std::string format = "glog-0.6";
};

// --debug and --log-format.
void add_log_flags(CLI::App& app, LogFlags& flags);

// Before anything is logged.
void set_up_console(const LogFlags& flags);

// The flags as another of our programs takes them.
std::vector<std::string> to_arguments(const LogFlags& flags);

}  // namespace speedo
