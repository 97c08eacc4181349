#include "cli/signals.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

#include <unistd.h>

namespace speedo {

namespace {

using Action = Solver::Hooks::Action;

// timeout(1) sends its signal to the process and to the process's group, and systemd may send two
// in a row: what comes so soon after the first one that asked to stop is the same request.
constexpr std::int64_t kOneRequestNs = 300'000'000;

// Written by handlers: lock-free atomics only.
std::atomic<std::int64_t> stop_time_ns{0};  // of the first that asked to stop; 0: none did
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
std::atomic<int> stop_signal{0};
std::atomic<bool> stop_with_snapshot{false};
std::atomic<int> snapshot_signal{0};
std::atomic<SignalEffect> interrupt_effect{SignalEffect::kSnapshotAndStop};
std::atomic<SignalEffect> hangup_effect{SignalEffect::kSnapshotAndStop};

// Of the kernel's steady clock, never 0. A handler may ask for it.
std::int64_t steady_ns() {
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + 1;
}

void handle(int signal) {
  const SignalEffect effect = signal == SIGINT   ? interrupt_effect.load()
                              : signal == SIGHUP ? hangup_effect.load()
                                                 : SignalEffect::kSnapshotAndStop;
  if (effect == SignalEffect::kNone) return;
  if (effect == SignalEffect::kSnapshot) {
    snapshot_signal = signal;
    return;
  }
  const std::int64_t now = steady_ns();
  std::int64_t first = 0;
  const bool is_first = stop_time_ns.compare_exchange_strong(first, now);
  if (!is_first && now - first > kOneRequestNs) ::_exit(128 + signal);
  if (effect == SignalEffect::kSnapshotAndStop) stop_with_snapshot = true;
  if (is_first) stop_signal = signal;
}

// As nohup leaves SIGHUP.
bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

SignalEffect signal_effect(const std::string& word) {
  if (word == "snapshot") return SignalEffect::kSnapshot;
  return word == "none" ? SignalEffect::kNone : SignalEffect::kStop;
}

void install_signal_handlers(SignalEffect interrupt, SignalEffect hangup) {
  interrupt_effect = interrupt;
  hangup_effect = hangup;
  struct sigaction action {};
  action.sa_handler = handle;
  // Libraries are not prepared for interrupted system calls; whoever waits asks stop_requested().
  // Threads that compute have a stack for handlers (src/cpu/onednn/signal_stack.hpp).
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  if (hangup != SignalEffect::kStop || !is_ignored(SIGHUP)) ::sigaction(SIGHUP, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

std::optional<std::string> stop_requested() {
  const int signal = stop_signal.load();
  if (signal == 0) return std::nullopt;
  return std::string("SIG") + ::sigabbrev_np(signal) + " received";
}

int stop_signal_number() { return stop_signal.load(); }

bool take_snapshot_request() { return take_snapshot_signal() != 0; }

int take_snapshot_signal() { return snapshot_signal.exchange(0); }

bool stop_wants_snapshot() { return stop_with_snapshot; }

Action requested_action() {
  if (stop_signal.load() != 0) {
    return stop_wants_snapshot() ? Action::kSnapshotAndStop : Action::kStop;
  }
  return take_snapshot_request() ? Action::kSnapshot : Action::kContinue;
}

}  // namespace speedo
