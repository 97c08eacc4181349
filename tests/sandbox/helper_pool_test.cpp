// Helpers that die are replaced and counted; what kills two is to blame.

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <speedo/base/clock.hpp>

#include "sandbox/helper_pool.hpp"
#include "sandbox/helper_support.hpp"
#include "support/child_processes.hpp"

namespace speedo::test {
namespace {

TEST_CASE("as many helpers as are used at once, and they are used again") {
  HelperPool pool(helper_options());
  {
    const HelperLoan a = taken(pool), b = taken(pool);
    CHECK(pool.totals().started == 2);
  }
  const HelperLoan a = taken(pool), b = taken(pool);
  CHECK(pool.totals().started == 2);
  CHECK(pool.totals().died == 0);
}

TEST_CASE("a task that kills is named, and the next one is done") {
  HelperPool pool(helper_options());
  HelperLoan loan = taken(pool);
  const auto killed = loan.run(deed(Deed::kCrash));
  REQUIRE_FALSE(killed);
  CHECK(killed.error().code == ErrorCode::kData);
  CHECK(killed.error().message ==
        "the deed ends the process that reads it (SIGSEGV), and others in its place");
  CHECK(pool.totals().died == 3);
  CHECK(loan.run(deed(Deed::kReverse)));
  CHECK(pool.totals().started == 4);
}

TEST_CASE("a helper that others end costs no task") {
  HelperPool pool(helper_options());
  HelperLoan loan = taken(pool);
  const pid_t child = children_of(::getpid(), kHelperName).at(0);
  std::thread killer([child] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(child, SIGKILL);
  });
  const auto done = loan.run(deed(Deed::kWork, 400, "abc"));
  killer.join();
  REQUIRE(done);
  CHECK(text_of(*done) == "cba");
  CHECK(pool.totals().died == 1);
  CHECK(pool.totals().started == 2);
}

TEST_CASE("a helper in place of another is told first what that one was") {
  HelperPool pool(helper_options());
  HelperLoan loan = taken(pool);
  const HelperTask first = deed(Deed::kReverse), failing = deed(Deed::kFail);
  ::kill(children_of(::getpid(), kHelperName).at(0), SIGKILL);
  CHECK(loan.run(deed(Deed::kTell), &first));
  ::kill(children_of(::getpid(), kHelperName).at(0), SIGKILL);
  const auto failed = loan.run(deed(Deed::kTell), &failing);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message.starts_with("bad"));
  CHECK(pool.totals().died == 2);
}

TEST_CASE("helpers that die one after the other are started more and more slowly") {
  HelperPool pool(helper_options());
  HelperLoan loan = taken(pool);
  const Instant begin = steady_clock().now();
  for (int i = 0; i < 4; ++i) CHECK_FALSE(loan.run(deed(Deed::kCrash)));
  CHECK(pool.totals().died == 12);
  // 5, 10, 20, 40, 80, 160, 250 ms and more behind the fourth.
  CHECK(steady_clock().now() - begin > std::chrono::milliseconds(500));
  REQUIRE(loan.run(deed(Deed::kReverse)));
  const Instant again = steady_clock().now();
  CHECK_FALSE(loan.run(deed(Deed::kCrash)));
  CHECK(steady_clock().now() - again < std::chrono::milliseconds(500));
}

TEST_CASE("several threads have helpers, while others end them") {
  HelperPool pool(helper_options());
  constexpr int kThreads = 4, kTasks = 150;
  std::atomic<int> right{0}, working{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        const std::string input = std::to_string(t) + "/" + std::to_string(i);
        auto loan = pool.take();
        if (!loan) continue;
        const auto done = loan->run(deed(Deed::kWork, 1, input));
        if (done && text_of(*done) == std::string(input.rbegin(), input.rend())) ++right;
      }
      --working;
    });
  }
  int struck = 0;
  while (working > 0 && struck < 8) {
    for (const pid_t child : children_of(::getpid(), kHelperName)) {
      if (::kill(child, SIGKILL) == 0) ++struck;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads * kTasks);
  CHECK(struck > 0);
  CHECK(pool.totals().died > 0);
}

}  // namespace
}  // namespace speedo::test
