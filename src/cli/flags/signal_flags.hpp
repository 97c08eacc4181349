#pragma once

#include <string>

namespace CLI {
class App;
}

namespace speedo {

// What SIGINT and SIGHUP do, in Caffe's words; the same for all that trains.
struct SignalFlags {
  std::string sigint_effect;  // empty: snapshot and stop
  std::string sighup_effect = "snapshot";
};

// --sigint-effect and --sighup-effect.
void add_signal_flags(CLI::App& app, SignalFlags& flags);

void install_signal_handlers(const SignalFlags& flags);

// For the end of a command's help.
inline constexpr const char* kSignalHelp =
    "SIGINT or SIGTERM: end with a snapshot; the second one ends at once. SIGHUP: write a\n"
    "snapshot and go on.\n";

}  // namespace speedo
