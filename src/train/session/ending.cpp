#include "train/session/ending.hpp"

#include <utility>

#include "base/write_fault.hpp"

namespace speedo {

bool another_follows(const std::optional<Error>& end) {
  if (!end) return false;
  return is_transient(end->code) || end->code == ErrorCode::kFull ||
         end->code == ErrorCode::kSuperseded;
}

// An error that says the same goes into Finish.
void Ending::announce(SessionCommands& out) const {
  const bool finish_says_it = plan_.error && plan_.error->message == plan_.reason;
  if (!finish_says_it) out.note(plan_.error.has_value(), "{}", plan_.reason);
}

void Ending::send_away(PeerId peer, SessionCommands& out) const {
  if (another_follows(plan_.error)) return out.refuse(peer, ErrorCode::kUnavailable, plan_.reason);
  out.add(master_command::SendStop{peer, {clip_text(plan_.reason)}});
}

void Ending::hurry(Instant now, TestsAndSnapshots& jobs) {
  plan_.test = false;
  plan_.stopped = true;
  jobs.cancel_tests();
  if (retry_at_) retry_at_ = now;
}

void Ending::fail(const Error& error, SessionCommands& out) {
  if (!plan_.stopped || !is_transient(error.code)) return keep(error, out);
  out.note(true, "{}", error.message);
}

void Ending::last_test_failed(const Error& error, SessionCommands& out) {
  plan_.test = false;
  fail(error, out);
}

void Ending::last_snapshot_failed(const Error& error, std::uint64_t iteration, Instant now,
                                  SessionCommands& out) {
  const bool may_be_written = error.code == ErrorCode::kCannotWrite && waiting_may_help(error);
  if (may_be_written && !plan_.stopped) {
    out.note(true,
             "the last snapshot cannot be written: {}; trying again in {} s, until there is room "
             "or this master is told to stop",
             error.message, kSnapshotRetryInterval.count());
    retry_at_ = now + kSnapshotRetryInterval;
    return;
  }
  plan_.snapshot = false;
  // Also of one that was told to stop: whoever waits for the files learns that there are none.
  keep({is_transient(error.code) ? ErrorCode::kUnavailable : error.code,
        fmt::format("the snapshot of iteration {} is not written: {}", iteration, error.message)},
       out);
}

void Ending::keep(const Error& error, SessionCommands& out) {
  if (plan_.error) {
    out.note(true, "{}", error.message);
  } else {
    plan_.error = error;
  }
}

void Ending::retry(std::uint64_t iteration, Instant now, TestsAndSnapshots& jobs) {
  if (!retry_at_ || now < *retry_at_) return;
  retry_at_.reset();
  jobs.request_snapshot(iteration);
}

std::optional<std::uint64_t> Ending::last_test(std::uint64_t iteration) const {
  if (!plan_.test) return std::nullopt;
  return iteration;
}

// Weights that are known to have diverged are not worth a snapshot.
void Ending::request(const Weights& weights, TestsAndSnapshots& jobs, SessionCommands& out) {
  if (plan_.test) {
    jobs.request_test(weights.iteration);
  } else {
    jobs.cancel_tests();
  }
  if (jobs.has_diverged(weights.iteration) && !std::exchange(diverged_, true)) {
    fail({ErrorCode::kNotFinite, diverged_test(weights.iteration)}, out);
  }
  const bool wanted = plan_.snapshot && weights.worth_saving && !diverged_;
  if (wanted && !retry_at_) jobs.request_snapshot(weights.iteration);
}

bool Ending::is_complete(const TestsAndSnapshots& jobs) const {
  const bool testing = plan_.test && jobs.test_is_open();
  return !testing && !jobs.snapshot_is_open() && !retry_at_;
}

}  // namespace speedo
