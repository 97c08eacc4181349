#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include <speedo/base/clock.hpp>

#include "sim/event_queue.hpp"

namespace speedo::sim {

// A process of the simulated cluster. What is done in it waits while it is stopped (SIGSTOP) and is
// void once it is dead. It has a monotonic clock of its own, which may leap or stand still.
class Process {
 public:
  explicit Process(EventQueue& queue) : state_(std::make_shared<State>(queue)) {}
  ~Process() { kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool alive() const { return state_->alive; }
  bool frozen() const { return state_->frozen; }
  bool running() const { return alive() && !frozen(); }
  Instant now() const;

  // Does `action` here, so much later.
  void after(Instant delay, std::function<void()> action);
  // The same as soon as possible, but not within this call.
  void soon(std::function<void()> action) { after(Instant{0}, std::move(action)); }

  void freeze();
  // What waited is done in its order, not within this call.
  void thaw();
  // At once if it can, else when it goes on, after what already waits; never if it is dead. The
  // caller is no process.
  void here(std::function<void()> action) { do_here(*state_, std::move(action)); }
  std::uint64_t freezes() const { return state_->freezes; }  // so far
  bool has_waiting() const { return !state_->waiting.empty(); }
  void kill();

  void leap_clock(Instant by) { state_->clock_offset += by; }
  void stop_clock();
  void go_on_clock();

 private:
  struct State {
    explicit State(EventQueue& of_queue) : queue(of_queue) {}
    EventQueue& queue;
    bool alive = true, frozen = false, clock_stopped = false;
    std::deque<std::function<void()>> waiting;
    Instant clock_offset{0}, stopped_at{0};
    std::uint64_t freezes = 0;
  };
  static void do_here(State& state, std::function<void()> action);
  // Actions outlive their process in the queue.
  std::shared_ptr<State> state_;
};

}  // namespace speedo::sim
