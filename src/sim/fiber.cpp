#include "sim/fiber.hpp"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace speedo::sim {
namespace {

// Sanitized code needs more of a stack; memory is only taken where it is touched.
constexpr std::size_t kStackBytes = std::size_t{1} << 20U;
constexpr std::size_t kStacksKept = 256;

thread_local Fiber* running = nullptr;

}  // namespace

// Stacks of fibers that are over, for the next ones; below each lies a page that may not be
// touched.
class Fiber::Pool {
 public:
  ~Pool() {
    for (const Stack& stack : kept_) release(stack);
  }
  Stack take() {
    if (!kept_.empty()) {
      const Stack stack = kept_.back();
      kept_.pop_back();
      return stack;
    }
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const memory = ::mmap(nullptr, kStackBytes + page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    SPEEDO_ASSERT(memory != MAP_FAILED);
    SPEEDO_ASSERT(::mprotect(memory, page, PROT_NONE) == 0);
    return {memory, kStackBytes + page};
  }
  void give(const Stack& stack) {
    if (kept_.size() < kStacksKept) return kept_.push_back(stack);
    release(stack);
  }

 private:
  static void release(const Stack& stack) { ::munmap(stack.memory, stack.bytes); }
  std::vector<Stack> kept_;
};

Fiber::Pool& Fiber::pool() {
  thread_local Pool pool;
  return pool;
}

Fiber::Fiber(std::function<void()> work) : work_(std::move(work)) {}

Fiber::~Fiber() {
  SPEEDO_ASSERT(!begun_ || over_);
  if (stack_.memory == nullptr) return;
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(watched_.self);
#endif
  pool().give(stack_);
}

Fiber* Fiber::current() { return running; }

// A pointer comes as two numbers: makecontext() passes on nothing else.
void Fiber::enter(unsigned high, unsigned low) {
  const auto address = (std::uint64_t{high} << 32U) | low;
  auto* const fiber = reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(address));
  fiber->end_switch_in();
  fiber->run();
}

void Fiber::run() {
  work_();
  work_ = nullptr;
  over_ = true;
  begin_switch_out();
  leave_for(caller_);
  SPEEDO_ASSERT(false);
}

// Sanitizers know of ucontext's functions, which ask the kernel for the signal mask each time. What
// compilers have instead leaves the mask alone: all fibers have the same.
#if defined(SPEEDO_SANITIZED)
void Fiber::go_over(Place& from, Place& to) {
  SPEEDO_ASSERT(::swapcontext(&from.context, &to.context) == 0);
}
void Fiber::leave_for(Place& to) { ::setcontext(&to.context); }
#else
[[gnu::noinline]] void Fiber::leave_for(Place& to) { __builtin_longjmp(to.words, 1); }
// Not in one function with it: compilers forbid that.
[[gnu::noinline]] void Fiber::go_over(Place& from, Place& to) {
  if (__builtin_setjmp(from.words) == 0) leave_for(to);
}
#endif

// From the caller's stack to the beginning of its own.
[[gnu::noinline]] void Fiber::begin() {
  stack_ = pool().take();
  ucontext_t first{};
  SPEEDO_ASSERT(::getcontext(&first) == 0);
  first.uc_stack.ss_sp = stack_.memory;
  first.uc_stack.ss_size = stack_.bytes;
  first.uc_link = nullptr;
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this));
  ::makecontext(&first, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
                static_cast<unsigned>(address >> 32U), static_cast<unsigned>(address));
#if defined(__SANITIZE_THREAD__)
  watched_.self = __tsan_create_fiber(0);
#endif
  begin_switch_in();
#if defined(SPEEDO_SANITIZED)
  SPEEDO_ASSERT(::swapcontext(&caller_.context, &first) == 0);
#else
  if (__builtin_setjmp(caller_.words) == 0) ::setcontext(&first);
#endif
}

void Fiber::resume() {
  SPEEDO_ASSERT(!over_ && running != this);
  previous_ = std::exchange(running, this);
  if (std::exchange(begun_, true)) {
    begin_switch_in();
    go_over(caller_, place_);
  } else {
    begin();
  }
  end_switch_out();
  running = previous_;
}

void Fiber::stop() {
  Fiber* const self = running;
  SPEEDO_ASSERT(self != nullptr);
  self->begin_switch_out();
  go_over(self->place_, self->caller_);
  self->end_switch_in();
}

void Fiber::begin_switch_in() {
#if defined(__SANITIZE_ADDRESS__)
  // The caller's shadow is kept by end_switch_out().
  __sanitizer_start_switch_fiber(&watched_.caller, stack_.memory, stack_.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  watched_.caller = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(watched_.self, 0);
#endif
}

void Fiber::end_switch_in() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(watched_.shadow, &watched_.caller_stack, &watched_.caller_bytes);
#endif
}

void Fiber::begin_switch_out() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(over_ ? nullptr : &watched_.shadow, watched_.caller_stack,
                                 watched_.caller_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(watched_.caller, 0);
#endif
}

void Fiber::end_switch_out() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(watched_.caller, nullptr, nullptr);
#endif
}

}  // namespace speedo::sim
