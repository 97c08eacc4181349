#include "train/session/state_gathering.hpp"

#include <utility>

#include "train/note_text.hpp"

namespace speedo {

void StateGathering::begin(std::uint64_t iteration, std::map<WorkerId, std::string> asked,
                           Instant now) {
  iteration_ = iteration;
  awaited_ = std::move(asked);
  saved_.clear();
  asked_at_ = now;
}

void StateGathering::answered(WorkerId worker, const StateSavedMessage& message,
                              SessionCommands& out) {
  if (!is_of(message.iteration) || !awaited_.contains(worker)) return;
  if (message.code != 0) return leave_out(worker, clip_text(message.reason), out);
  awaited_.erase(worker);
  saved_.insert(worker);
}

void StateGathering::gone(WorkerId worker, SessionCommands& out) {
  if (awaited_.contains(worker)) leave_out(worker, "it is gone", out);
}

void StateGathering::tick(Instant now, SessionCommands& out) {
  if (now - asked_at_ < patience_) return;
  while (!awaited_.empty()) {
    leave_out(awaited_.begin()->first,
              fmt::format("it has not answered within {} s", whole_seconds(patience_)), out);
  }
}

void StateGathering::break_off(SessionCommands& out) {
  while (!awaited_.empty()) {
    leave_out(awaited_.begin()->first, "training ends and cannot wait for it", out);
  }
}

void StateGathering::leave_out(WorkerId worker, const std::string& why, SessionCommands& out) {
  const auto left_out = awaited_.extract(worker);
  out.note(true, "the snapshot of iteration {} is without the state of worker {}: {}", *iteration_,
           left_out.mapped(), why);
}

}  // namespace speedo
