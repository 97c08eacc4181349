#pragma once

#include <string>

#include "cli/options/option_values.hpp"

namespace speedo {

// What SIGINT and SIGHUP do, in Caffe's words; the same for all that trains.
struct SignalFlags {
  std::string sigint_effect;  // empty: snapshot and stop
  std::string sighup_effect = "snapshot";
};

SignalFlags signal_flags(const OptionValues& values);

void install_signal_handlers(const SignalFlags& flags);

}  // namespace speedo
