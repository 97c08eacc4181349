#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <speedo/train/master_session.hpp>

#include "train/session/periodic_job.hpp"
#include "train/session/session_commands.hpp"

namespace speedo {

// Tests and snapshots, which work on copies of the weights while training goes on.
//
// Invariant: at most one test and one snapshot are under way; a merge waits while one more is due,
// because each is of the weights of just its iteration.
// Thread safety: one thread.
class TestsAndSnapshots {
 public:
  // Intervals in iterations; 0: never by themselves.
  explicit TestsAndSnapshots(std::uint64_t snapshot_interval) : snapshots_(snapshot_interval) {}

  // The iteration is merged, and tests have this interval in the stage that it belongs to.
  void reach(std::uint64_t iteration, std::uint64_t test_interval);
  void request_test(std::uint64_t iteration) { tests_.request(iteration); }
  void request_snapshot(std::uint64_t iteration) { snapshots_.request(iteration); }
  void cancel_tests() { tests_.cancel(); }
  void cancel_snapshots() { snapshots_.cancel(); }
  // Somebody asked for a snapshot: it is of the next iteration at which no merge is under way and
  // the last runs had finite losses.
  void wish_snapshot(bool wished) { snapshot_wished_ = wished; }

  struct Moment {
    std::uint64_t iteration = 0;
    bool finite = true;                      // the losses of the last runs
    std::optional<std::uint64_t> last_test;  // snapshots wait until this iteration is tested
  };
  // Starts what is due and can be started; whether a snapshot was. Requires: no merge is under way.
  bool start_due(const Moment& moment, SessionCommands& out);
  // One that is due waits for another under way: the weights must stay as they are.
  bool holds_weights() const { return tests_.due() || snapshots_.due(); }
  bool snapshot_is_due() const { return snapshots_.due(); }
  bool snapshot_is_under_way() const { return snapshots_.under_way(); }
  // The snapshot that was started last, once.
  std::optional<std::uint64_t> take_unfinished_snapshot() {
    return std::exchange(unfinished_snapshot_, std::nullopt);
  }
  bool test_is_open() const { return tests_.due() || tests_.under_way(); }
  bool snapshot_is_open() const { return snapshots_.due() || snapshots_.under_way(); }

  void tested(const master_event::Tested& event);
  // They return the iteration that was under way.
  std::optional<std::uint64_t> test_failed() { return tests_.failed(); }
  void snapshot_done() { snapshots_.done(); }
  std::optional<std::uint64_t> snapshot_failed() {
    unfinished_snapshot_.reset();
    return snapshots_.failed();
  }

  // The last test of this iteration had no finite loss.
  bool has_diverged(std::uint64_t iteration) const { return diverged_at_ == iteration; }

  void show(MasterProgress& progress) const;

 private:
  PeriodicJob tests_{0}, snapshots_;
  bool snapshot_wished_ = false;
  std::optional<std::uint64_t> unfinished_snapshot_;  // started, and FinishSnapshot not said
  std::optional<std::uint64_t> diverged_at_;  // the last iteration whose test had no finite loss
  std::optional<float> accuracy_, loss_;      // of the last test
};

// What is said of a test without a finite loss.
std::string diverged_test(std::uint64_t iteration);

}  // namespace speedo
