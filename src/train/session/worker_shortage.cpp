#include "train/session/worker_shortage.hpp"

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "train/note_text.hpp"

namespace speedo {

WorkerShortage::WorkerShortage(const MasterConfig& config) : config_(config) {
  SPEEDO_ASSERT(config.workers_min >= 1 && config.workers_min <= config.workers_start);
}

WorkerShortage::Change WorkerShortage::update(const View& view, Instant now, SessionCommands& out) {
  if (view.ready > 0) {
    alone_since_.reset();
  } else if (view.training && !alone_since_) {
    alone_since_ = now;
  }
  const bool pauses = view.training && is_short(view);
  if (pauses == paused_) return Change::kNone;
  SPEEDO_ASSERT(view.training);  // gathering never pauses, and training never gathers again
  paused_ = pauses;
  if (paused_) {
    short_since_ = now;
    // Workers that cannot work come and go at once, and training is no further.
    is_pause_said_ = view.iteration != noted_at_ || now - *noted_ >= kWaitingNoteInterval;
    if (is_pause_said_) note_waiting(view, now, out);
    return Change::kPauses;
  }
  short_since_.reset();
  if (is_pause_said_) {
    out.note(false, "training goes on at iteration {} with {}", view.iteration,
             count_workers(view.ready));
  }
  return Change::kGoesOn;
}

std::optional<std::string> WorkerShortage::watch(const View& view, bool store_is_away, Instant now,
                                                 SessionCommands& out) {
  SPEEDO_ASSERT(paused_ == (view.training && is_short(view)));
  if (!is_short(view) || store_is_away) {
    short_since_.reset();
    if (store_is_away && alone_since_) alone_since_ = now;
    return std::nullopt;
  }
  if (!short_since_) short_since_ = noted_ = now;
  if (auto reason = give_up(view, now)) return reason;
  if (now - *noted_ >= kWaitingNoteInterval) note_waiting(view, now, out);
  return std::nullopt;
}

std::optional<std::string> WorkerShortage::give_up(const View& view, Instant now) const {
  const auto over = [now](const std::optional<Instant>& since, std::chrono::seconds limit) {
    return since && limit.count() != 0 && now - *since >= limit;
  };
  if (over(view.training ? alone_since_ : short_since_, config_.join_timeout)) {
    return fmt::format(
        "{} of {} joined within {} s (--join-timeout); start more workers, or "
        "check that they can reach this master",
        view.ready, count_workers(wanted(view.training)), config_.join_timeout.count());
  }
  if (view.training && over(short_since_, config_.below_min_timeout)) {
    return fmt::format(
        "training was paused for {} s with {} of at least {} "
        "(--below-min-timeout); start more workers and resume",
        config_.below_min_timeout.count(), view.ready, count_workers(config_.workers_min));
  }
  return std::nullopt;
}

void WorkerShortage::note_waiting(const View& view, Instant now, SessionCommands& out) {
  noted_ = now;
  if (view.training) noted_at_ = view.iteration;
  is_pause_said_ = view.training;
  const std::uint64_t needed = wanted(view.training);
  if (!view.training && !view.last_failure.empty()) {
    out.note(true, "waiting for workers: {} of {} are ready; {}", view.ready, needed,
             view.last_failure);
  } else if (!view.training) {
    out.note(false, "waiting for workers: {} of {} are ready", view.ready, needed);
  } else if (view.ready == 0) {
    out.note(true, "no worker is left at iteration {}; waiting for new ones", view.iteration);
  } else {
    out.note(true, "training pauses at iteration {}: {} of at least {} alive; waiting for more",
             view.iteration, view.ready, count_workers(needed));
  }
}

}  // namespace speedo
