// golden_runner FOLDER...: compares this program with numbers that Caffe computed. Prints one line
// per case found under the folders, then the totals. Exit code: 0; 1 if a case failed; 2 for usage.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <speedo/backend/backend.hpp>

#include "base/log.hpp"
#include "cpu/cpu_backend.hpp"
#include "data/feed_factory.hpp"
#include "golden/golden_case.hpp"

namespace speedo::golden {
namespace {

constexpr int kPassed = 0;
constexpr int kFailed = 1;
constexpr int kSkipped = 77;
constexpr unsigned kCaseSeconds = 120;

// Prints the case's line and returns its verdict.
int run_here(const Case& one) {
  // Caffe's paths start at the working directory.
  std::error_code error;
  std::filesystem::current_path(one.directory, error);
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  const std::unique_ptr<FeedFactory> feeds = make_feed_factory();
  const Result<Comparison> result = one.run(one.path, {backend.get(), feeds.get()});
  if (result && result->passed()) {
    std::printf("pass %s (%s)\n", one.name.c_str(), result->summary().c_str());
    return kPassed;
  }
  if (!result && result.error().code == ErrorCode::kUnsupported) {
    std::printf("skip %s: %s\n", one.name.c_str(), result.error().message.c_str());
    return kSkipped;
  }
  const std::string why = result ? result->summary() : result.error().message;
  std::printf("FAIL %s: %s\n", one.name.c_str(), why.c_str());
  return kFailed;
}

// Runs the case in a process of its own, so that one that crashes or hangs is one failed case.
int run_case(const Case& one) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kCaseSeconds);
    const int verdict = run_here(one);
    std::fflush(stdout);
    _exit(verdict);
  }
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) {
    return WEXITSTATUS(status);
  }
  const char* how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "could not be started";
  std::printf("FAIL %s: %s\n", one.name.c_str(), how);
  return kFailed;
}

int run(const std::vector<std::string>& folders) {
  spdlog::set_level(spdlog::level::off);
  std::vector<Case> cases;
  for (const std::string& folder : folders) {
    const Result<std::vector<Case>> found = find_cases(folder);
    if (!found) {
      std::fprintf(stderr, "golden_runner: %s\n", found.error().message.c_str());
      return 2;
    }
    cases.insert(cases.end(), found->begin(), found->end());
  }
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  for (const Case& one : cases) {
    const int verdict = run_case(one);
    ++(verdict == kPassed ? passed : verdict == kSkipped ? skipped : failed);
  }
  std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed == 0 && !cases.empty() ? 0 : 1;
}

}  // namespace
}  // namespace speedo::golden

int main(int argc, char** argv) {
  const std::vector<std::string> folders(argv + 1, argv + argc);
  if (folders.empty() || folders.front().starts_with('-')) {
    std::fprintf(stderr, "usage: golden_runner FOLDER...\n");
    return 2;
  }
  return speedo::golden::run(folders);
}
