#pragma once

#include <optional>
#include <string>

#include <speedo/core/solver.hpp>

namespace speedo {

// What SIGINT, SIGTERM and SIGHUP do while a command works. A signal that asks to stop is obeyed at
// the next good moment; the next such signal ends the process at once with 128 + its number. Those
// within a third of a second count as one, which wants a snapshot if any of them does.
enum class SignalEffect { kSnapshotAndStop, kStop, kSnapshot, kNone };

// Of the words that Caffe's -sigint_effect takes: "stop", "snapshot", "none".
SignalEffect signal_effect(const std::string& word);

// SIGTERM always stops with a snapshot. A hangup that would only stop, and that nohup has the
// process ignore, stays ignored. Writing to a closed pipe becomes an error, not a signal.
void install_signal_handlers(SignalEffect interrupt, SignalEffect hangup);

// The reason to stop ("SIGTERM received"), once a signal asked for it.
std::optional<std::string> stop_requested();

// The number of that signal; 0: none came.
int stop_signal_number();

// Whether a signal asked for a snapshot since the last call.
bool take_snapshot_request();
// The same: which signal that was; 0: none.
int take_snapshot_signal();

// Whether the signal that asked to stop wants a snapshot, be it the solver's wish or not.
bool stop_wants_snapshot();

// What the signals since the last call ask of a solver.
Solver::Hooks::Action requested_action();

}  // namespace speedo
