#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <speedo/base/clock.hpp>
#include <speedo/train/master_session.hpp>

#include "train/session/session_commands.hpp"

namespace speedo {

// Too few workers: whether training pauses, what the log is to say of it, and when the master gives
// up. Thread safety: one thread. Times come from the caller, and never go back.
//
// Invariant: training pauses exactly while it has begun and fewer than workers_min are ready.
class WorkerShortage {
 public:
  // What it is judged by. Only while training has not ended.
  struct View {
    bool training = false;    // else workers are still being gathered
    std::uint64_t ready = 0;  // workers
    std::uint64_t iteration = 0;
    std::string_view last_failure;  // why a worker could not work, for the log
  };
  enum class Change { kNone, kPauses, kGoesOn };

  // `config` outlives it; 1 <= workers_min <= workers_start.
  explicit WorkerShortage(const MasterConfig& config);

  bool paused() const { return paused_; }
  // Workers needed for training to start, or to go on.
  std::uint64_t wanted(bool training) const {
    return training ? config_.workers_min : config_.workers_start;
  }
  // Call when the number of ready workers has changed. A pause at an iteration that has had one is
  // said again after kWaitingNoteInterval, and the end of a pause where the pause was said.
  Change update(const View& view, Instant now, SessionCommands& out);
  // Call from time to time: says so while workers are missing, and gives the reason when it is time
  // to give up. While the store is away workers cannot make themselves ready, so that time does not
  // count.
  std::optional<std::string> watch(const View& view, bool store_is_away, Instant now,
                                   SessionCommands& out);
  // Training is over.
  void end() { paused_ = false; }

 private:
  bool is_short(const View& view) const { return view.ready < wanted(view.training); }
  std::optional<std::string> give_up(const View& view, Instant now) const;
  void note_waiting(const View& view, Instant now, SessionCommands& out);

  const MasterConfig& config_;
  bool paused_ = false;
  bool is_pause_said_ = false;                  // the latest
  std::optional<std::uint64_t> noted_at_;       // iteration of the last pause that was said
  std::optional<Instant> short_since_, noted_;  // fewer than wanted
  std::optional<Instant> alone_since_;          // training without any worker
};

}  // namespace speedo
