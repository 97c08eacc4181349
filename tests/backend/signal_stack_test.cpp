// Signals that strike while oneDNN computes.

#include <atomic>
#include <chrono>
#include <csignal>
#include <vector>

#include <sys/time.h>

#include <speedo/backend/backend.hpp>

#include "cpu/isa.hpp"
#include "cpu/onednn/onednn.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace speedo {
namespace {

std::atomic<int> strikes{0}, on_own_stack{0};

void strike(int) {
  stack_t stack{};
  ::sigaltstack(nullptr, &stack);
  if ((stack.ss_flags & SS_ONSTACK) != 0) ++on_own_stack;
  ++strikes;
}

// SIGALRM each half millisecond, to whichever thread takes it.
class Alarms {
 public:
  Alarms() {
    struct sigaction action {};
    action.sa_handler = strike;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval each{.it_interval = {0, 500}, .it_value = {0, 500}};
    ::setitimer(ITIMER_REAL, &each, nullptr);
  }
  ~Alarms() {
    const itimerval none{};
    ::setitimer(ITIMER_REAL, &none, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

TEST_CASE("a handler of a signal that strikes within a product runs on a stack of its own") {
  if (!cpu::uses_onednn()) SPEEDO_SKIP("needs oneDNN");
#if defined(__SANITIZE_THREAD__)
  SPEEDO_SKIP("the thread sanitizer calls handlers later, elsewhere");
#endif
  constexpr std::int64_t kSize = 200;
  const std::vector<float> a(kSize * kSize, 0.5F), b(kSize * kSize, 2.0F);
  const Backend::Gemm product{Op::kNone, Op::kTranspose, {kSize, kSize, kSize}, 1.0F, 0.0F};
  const auto compute = [&] {
    std::vector<float> c(kSize * kSize);
    cpu::onednn_gemm(product, {a.data(), kSize}, {b.data(), kSize}, {c.data(), kSize});
    return c.back();
  };
  REQUIRE(compute() == static_cast<float>(kSize));
  strikes = 0;
  on_own_stack = 0;
  {
    const Alarms alarms;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (strikes < 100 && std::chrono::steady_clock::now() < end) {
      REQUIRE(compute() == static_cast<float>(kSize));
    }
  }
  CHECK(strikes >= 100);
  CHECK(on_own_stack == strikes);
}

}  // namespace
}  // namespace speedo
