#include "cli/flags/signal_flags.hpp"

#include <CLI/CLI.hpp>

#include "cli/flags/flag_values.hpp"
#include "cli/signals.hpp"

namespace speedo {

void add_signal_flags(CLI::App& app, SignalFlags& flags) {
  const char* group = "Other";
  const std::vector<std::string> effects = {"stop", "snapshot", "none"};
  takes_one_of(app.add_option("--sigint-effect", flags.sigint_effect,
                              "What SIGINT does: stop (with a snapshot unless the solver says "
                              "snapshot_after_train: false), snapshot (and go on) or none "
                              "(default: snapshot and stop)"),
               effects)
      ->group(group);
  takes_one_of(app.add_option("--sighup-effect", flags.sighup_effect,
                              "What SIGHUP does: stop, snapshot (default) or none"),
               effects)
      ->group(group);
}

void install_signal_handlers(const SignalFlags& flags) {
  install_signal_handlers(flags.sigint_effect.empty() ? SignalEffect::kSnapshotAndStop
                                                      : signal_effect(flags.sigint_effect),
                          signal_effect(flags.sighup_effect));
}

}  // namespace speedo
