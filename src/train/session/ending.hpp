#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <speedo/base/clock.hpp>
#include <speedo/train/master_session.hpp>

#include "train/session/session_commands.hpp"
#include "train/session/tests_and_snapshots.hpp"

namespace speedo {

// The end of training, from its reason to Finish: the last test and then the last snapshot, both of
// the last iteration. A snapshot that cannot be written is tried again, until there is room or
// somebody tells this master to stop: all that was trained is in memory. Where waiting cannot help
// (base/write_fault.hpp) it is an error.
//
// Invariant: the first error stays.
// Thread safety: one thread. Times come from the caller.
class Ending {
 public:
  // A last snapshot that cannot be written is tried again after so long.
  static constexpr std::chrono::seconds kSnapshotRetryInterval{30};

  struct Plan {
    std::string reason;  // for the workers and the log
    std::optional<Error> error;
    bool test = false;  // at the last iteration, and to be waited for
    bool snapshot = false;
    bool stopped = false;  // somebody waits for this master to go
  };
  struct Weights {
    std::uint64_t iteration = 0;
    bool worth_saving = true;
  };

  // Says why, and tells whoever waits for the store to stop.
  explicit Ending(Plan plan) : plan_(std::move(plan)) {}
  void announce(SessionCommands& out) const;
  // Tells a worker that training is over. One that is refused connects again, until the next master
  // is there.
  void send_away(PeerId peer, SessionCommands& out) const;

  // Somebody asks again to stop: the last test is what takes long, or a full disk.
  void hurry(Instant now, TestsAndSnapshots& jobs);
  // Keeps the first error. Whoever was told to stop waits for no store: what was under way there is
  // left out of the snapshot, and given out again by a master that goes on from it.
  void fail(const Error& error, SessionCommands& out);
  // The test of the last iteration has failed.
  void last_test_failed(const Error& error, SessionCommands& out);
  // Its snapshot has: unless it is tried again that is an error, of one that was stopped too.
  void last_snapshot_failed(const Error& error, std::uint64_t iteration, Instant now,
                            SessionCommands& out);
  // A snapshot that could not be written is due again.
  void retry(std::uint64_t iteration, Instant now, TestsAndSnapshots& jobs);

  bool waits_for_test() const { return plan_.test; }
  // The last test says whether the last weights are worth a snapshot.
  std::optional<std::uint64_t> last_test(std::uint64_t iteration) const;
  // Asks for what is missing; asked for again, it changes nothing. Requires: no merge under way.
  void request(const Weights& weights, TestsAndSnapshots& jobs, SessionCommands& out);
  bool is_complete(const TestsAndSnapshots& jobs) const;

  const Plan& plan() const { return plan_; }

 private:
  void keep(const Error& error, SessionCommands& out);

  Plan plan_;
  bool diverged_ = false;            // the last iteration's test said so
  std::optional<Instant> retry_at_;  // the last snapshot could not be written
};

}  // namespace speedo
