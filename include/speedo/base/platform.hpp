#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <speedo/base/clock.hpp>

namespace speedo {

// A lock with a condition, for the threads of one platform. Thread safety: lock() and notify_all()
// from any of them, the rest by the one that has locked.
class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual void lock() = 0;
  virtual void unlock() = 0;
  virtual void notify_all() = 0;
  // Unlocks while it waits for notify_all(), or until the platform's clock shows `deadline`. May
  // return early for no reason.
  virtual void wait(std::optional<Instant> deadline = std::nullopt) = 0;

  // Waits until `holds()`; whether it does.
  template <class Predicate>
  bool wait_for(const Clock& clock, Instant time, Predicate holds) {
    const Instant deadline = clock.now() + time;
    while (!holds()) {
      if (clock.now() >= deadline) return false;
      wait(deadline);
    }
    return true;
  }
};

// A thread of a platform. Its destructor waits for the thread's end.
class Thread {
 public:
  virtual ~Thread() = default;
};

// What a process has of its machine: time, threads, chance, and its place among other processes.
// The simulator gives its processes one of their own, so that production code runs in virtual time.
// Thread safety: all methods from any thread.
class Platform {
 public:
  virtual ~Platform() = default;
  virtual const Clock& clock() const = 0;
  // Since 1970. May leap.
  virtual std::uint64_t wall_clock_microseconds() const = 0;
  // For names that no other process has, and for seeds.
  virtual std::uint64_t random_bits() = 0;
  // A name for this process that no other has or ever had.
  virtual std::string process_name() const = 0;
  // True if the process of that name, whatever follows it, is no more. False also if that cannot be
  // known from here.
  virtual bool is_known_dead(std::string_view process_name) const = 0;

  virtual std::unique_ptr<Monitor> make_monitor() = 0;
  // `name`: at most 15 characters. Throws std::system_error where the system gives no thread.
  virtual std::unique_ptr<Thread> start_thread(const char* name, std::function<void()> work) = 0;
  virtual void sleep(Instant time) = 0;  // the thread that calls
};

// The machine's. Lives for the whole program.
Platform& real_platform();

}  // namespace speedo
