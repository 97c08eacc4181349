#include "sim/process.hpp"

namespace speedo::sim {

Instant Process::now() const {
  return state_->clock_stopped ? state_->stopped_at : state_->queue.now() + state_->clock_offset;
}

void Process::do_here(State& state, std::function<void()> action) {
  if (!state.alive) return;
  if (state.frozen || !state.waiting.empty()) {
    state.waiting.push_back(std::move(action));
  } else {
    action();
  }
}

void Process::after(Instant delay, std::function<void()> action) {
  if (!alive()) return;
  state_->queue.after(delay, [state = state_, action = std::move(action)]() mutable {
    do_here(*state, std::move(action));
  });
}

void Process::freeze() {
  state_->frozen = true;
  state_->freezes += 1;
}

void Process::thaw() {
  state_->frozen = false;
  state_->queue.after(Instant{0}, [state = state_] {
    while (state->alive && !state->frozen && !state->waiting.empty()) {
      const std::function<void()> action = std::move(state->waiting.front());
      state->waiting.pop_front();
      action();
    }
  });
}

void Process::kill() {
  state_->alive = false;
  state_->waiting.clear();
}

void Process::stop_clock() {
  if (state_->clock_stopped) return;
  state_->stopped_at = now();
  state_->clock_stopped = true;
}

void Process::go_on_clock() {
  if (!state_->clock_stopped) return;
  state_->clock_stopped = false;
  state_->clock_offset = state_->stopped_at - state_->queue.now();
}

}  // namespace speedo::sim
