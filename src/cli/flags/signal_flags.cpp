#include "cli/flags/signal_flags.hpp"

#include "cli/signals.hpp"

namespace speedo {

SignalFlags signal_flags(const OptionValues& values) {
  SignalFlags flags;
  values.get("sigint-effect", flags.sigint_effect);
  values.get("sighup-effect", flags.sighup_effect);
  return flags;
}

void install_signal_handlers(const SignalFlags& flags) {
  install_signal_handlers(flags.sigint_effect.empty() ? SignalEffect::kSnapshotAndStop
                                                      : signal_effect(flags.sigint_effect),
                          signal_effect(flags.sighup_effect));
}

}  // namespace speedo
