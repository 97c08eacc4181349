#pragma once

#include <cstddef>
#include <functional>

#if defined(SPEEDO_SANITIZED)
#include <ucontext.h>
#endif

namespace speedo::sim {

// A function with a stack of its own, which stops and is let go on: a thread of a simulated
// process. Of a program's threads each runs its own fibers.
// Thread safety: one thread.
class Fiber {
 public:
  // `work` begins with the first resume(); no exception may leave it.
  explicit Fiber(std::function<void()> work);
  // Requires: it has not begun, or is over.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Lets it go on until it stops or is over; from the program's own stack or from another fiber.
  void resume();
  bool has_begun() const { return begun_; }
  bool over() const { return over_; }

  // That which runs; null outside of fibers.
  static Fiber* current();
  // The current one stops here until it is resumed.
  static void stop();

 private:
  struct Stack {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  // Where a stack goes on.
  struct Place {
#if defined(SPEEDO_SANITIZED)
    ucontext_t context{};
#else
    void* words[5] = {};  // of __builtin_setjmp()
#endif
  };
  // What sanitizers are told at a switch of stacks.
  struct Watched {
    void* shadow = nullptr;            // address sanitizer's
    const void* caller_stack = nullptr;
    std::size_t caller_bytes = 0;
    void* self = nullptr;              // thread sanitizer's
    void* caller = nullptr;
  };
  class Pool;
  static Pool& pool();
  static void enter(unsigned high, unsigned low);
  void run();
  void begin();
  static void go_over(Place& from, Place& to);
  static void leave_for(Place& to);
  void begin_switch_in();
  void end_switch_in();
  void begin_switch_out();
  void end_switch_out();

  std::function<void()> work_;
  Stack stack_;
  Place place_, caller_;
  Fiber* previous_ = nullptr;  // that resumed this one
  Watched watched_;
  bool begun_ = false, over_ = false;
};

}  // namespace speedo::sim
