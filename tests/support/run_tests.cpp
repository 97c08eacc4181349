#define CATCH_CONFIG_RUNNER
#include "support/run_tests.hpp"

#include <malloc.h>

#include <cstdio>
#include <limits>
#include <set>
#include <string>

#include "support/catch.hpp"
#include "support/skip.hpp"

#ifdef SPEEDO_SANITIZED
// Read by the sanitizers' libraries. Tests ask for memory that no machine has: that is an error of
// theirs to look at, and nothing to end the program for.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
#endif

namespace speedo::test {
namespace {

// What a run has come to; Catch2 gives a listener no other way out.
struct Progress {
  std::string running;
  std::set<std::string> skipped;
  std::size_t case_count = 0;
};
Progress& progress() {
  static Progress instance;
  return instance;
}

class Listener : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    progress().running = info.name;
  }
  void testRunEnded(const Catch::TestRunStats& stats) override {
    progress().case_count = stats.totals.testCases.total();
  }
};
CATCH_REGISTER_LISTENER(Listener)

}  // namespace

void note_skip(const std::string& reason) {
  progress().skipped.insert(progress().running);
  std::printf("skipped: %s: %s\n", progress().running.c_str(), reason.c_str());
  std::fflush(stdout);
}

int run_tests(int argc, char** argv) {
  // Arrays are made and left in their thousands: given back to the system, each would be paged in
  // anew, which was a sixth of the mergers' tests.
  mallopt(M_MMAP_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  const int exit_code = Catch::Session().run(argc, argv);
  const std::size_t skipped = progress().skipped.size();
  if (skipped == 0) return exit_code;
  std::printf("%zu of %zu test cases skipped\n", skipped, progress().case_count);
  const bool all = skipped == progress().case_count;
  return exit_code == 0 && all ? kSkippedExitCode : exit_code;
}

}  // namespace speedo::test
