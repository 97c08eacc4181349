// golden_runner [OPTIONS] FOLDER...: compares this program with numbers that Caffe computed. Prints
// one line per case found under the folders, then the totals. Exit code: 0; 1 if a case failed, or
// fewer passed than must; 2 for usage; 77 where the machine lacks the instruction set.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include <speedo/backend/backend.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "base/log.hpp"
#include "data/feed_factory.hpp"
#include "data/sink_factory.hpp"
#include "golden/golden_case.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"
#include "support/run_tests.hpp"

namespace speedo::golden {
namespace {

constexpr int kPassed = 0;
constexpr int kFailed = 1;
constexpr int kSkipped = test::kSkippedExitCode;
constexpr unsigned kCaseSeconds = 120;

struct Options {
  std::string backend = "cpu", device = "cpu";
  test::KernelChoice kernels;
  int threads = 1;
  int must_pass = 1;
  std::vector<std::string> folders;
};

std::unique_ptr<Backend> make_backend(const Options& options) {
  if (options.backend == "reference") return make_reference_backend();
  return test::make_backend(options.threads);
}

// Prints the case's line and returns its verdict.
int run_here(const Case& one, const Options& options) {
  if (options.kernels.gpu) {
    const auto kept = test::keep_to(options.kernels);
    if (!kept) return kSkipped;
  }
  // Caffe's paths start at the working directory.
  std::error_code error;
  std::filesystem::current_path(one.directory, error);
  std::unique_ptr<Backend> backend = make_backend(options);
  const std::unique_ptr<FeedFactory> feeds = make_feed_factory(options.threads);
  const std::unique_ptr<SinkFactory> sinks = make_sink_factory();
  const Result<Comparison> result = one.run(one.path, {backend.get(), feeds.get(), sinks.get()});
  backend.reset();
  if (!test::no_call_was_wrong()) return kFailed;
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
int run_case(const Case& one, const Options& options) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kCaseSeconds);
    const int verdict = run_here(one, options);
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

int run(const Options& options) {
  set_log_level(LogLevel::kNothing);
  std::vector<Case> cases;
  for (const std::string& folder : options.folders) {
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
    const int verdict = run_case(one, options);
    ++(verdict == kPassed ? passed : verdict == kSkipped ? skipped : failed);
  }
  std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  if (passed < options.must_pass) {
    std::printf("FAIL: %d must pass, not %d\n", options.must_pass, passed);
    return kFailed;
  }
  return failed == 0 ? kPassed : kFailed;
}

// A process that has looked at a GPU can leave none to those that it forks: another one looks.
bool can_keep_to(const test::KernelChoice& kernels) {
  const pid_t child = fork();
  if (child == 0) {
    const auto kept = test::keep_to(kernels);
    if (!kept) std::fprintf(stderr, "golden_runner: skipped: %s\n", kept.error().message.c_str());
    _exit(kept ? 0 : kSkipped);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Compares this program with numbers that Caffe computed");
  app.add_option("--backend", options.backend, "cpu, or reference: the obvious loops of the tests")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads that compute")
      ->check(CLI::Range(1, kCpuThreadsMax))
      ->capture_default_str();
  app.add_option("--cpu-isa", options.kernels.isa, "Use no kernels above these")
      ->check(CLI::IsMember({"portable", "avx2", "avx512"}));
  app.add_flag("--no-onednn", options.kernels.no_onednn, "Compute as a build without oneDNN");
  app.add_flag("--deferred", options.kernels.deferred,
               "cpu: on a device that does nothing before it is waited for");
  app.add_option("--device", options.device, "cpu, gpu, or gpu-double: the GPU's without a GPU")
      ->check(CLI::IsMember({"cpu", "gpu", "gpu-double"}))
      ->capture_default_str();
  app.add_option("--must-pass", options.must_pass, "Fail if fewer cases pass; skipped ones do not")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("folders", options.folders, "Folders of cases")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.device == "gpu") options.kernels.gpu = 0;
  if (options.device == "gpu-double") options.kernels.gpu_double = 0;
  if (!can_keep_to(options.kernels)) return kSkipped;
  if (!options.kernels.gpu && !test::keep_to(options.kernels)) return kSkipped;
  test::fresh_seed();  // one for all cases, which run in processes of their own
  return run(options);
}

}  // namespace
}  // namespace speedo::golden

int main(int argc, char** argv) { return speedo::golden::main(argc, argv); }
