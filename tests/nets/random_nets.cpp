// random_nets [OPTIONS] [FOLDER...]: nets against the reference backend: the prototxts in the
// folders, which once found a fault, and random ones. Prints each net that is wrong, with its seed
// and its text, then the totals. Exit code: 0; 1 if a net was wrong or ended its process; 2 for
// usage; 77 where the machine lacks the instruction set.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <speedo/base/file.hpp>
#include <speedo/base/folder.hpp>

#include "base/log.hpp"
#include "core/prototxt.hpp"
#include "nets/check.hpp"
#include "nets/random_net.hpp"
#include "support/kernels.hpp"
#include "support/long_runs.hpp"
#include "support/random_seed.hpp"
#include "support/run_tests.hpp"

namespace speedo::nets {
namespace {

constexpr unsigned kNetSeconds = 120;
// More would say that the nets are drawn badly: such a net shows only large faults.
constexpr double kSensitiveShareMax = 0.1;

struct Options {
  test::KernelChoice kernels;
  std::uint64_t seed = 0;  // of the first random net; the others' follow
  std::uint64_t count = 0;
  std::vector<std::string> folders;
};

struct Trial {
  std::string name;
  std::string text;  // prototxt
  std::uint64_t data_seed = 0;
};

struct Totals {
  int right = 0, sensitive = 0, wrong = 0;
  int all() const { return right + sensitive + wrong; }
};

void print(const char* nets, const Totals& totals) {
  std::printf("%s: %d right, %d sensitive, %d wrong\n", nets, totals.right, totals.sensitive,
              totals.wrong);
}

Kind run_here(const Trial& trial) {
  const auto net = parse_net_prototxt(trial.text, trial.name);
  if (!net) {
    std::printf("%s: %s\n", trial.name.c_str(), net.error().message.c_str());
    return Kind::kWrong;
  }
  const Verdict verdict = check(*net, trial.data_seed);
  if (verdict.kind == Kind::kRight) return verdict.kind;
  std::printf("%s %s: %s\n", verdict.kind == Kind::kWrong ? "WRONG" : "sensitive",
              trial.name.c_str(), verdict.what.c_str());
  return verdict.kind;
}

// In a process of its own, so that a net that crashes or hangs is one wrong net.
Kind run(const Trial& trial) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kNetSeconds);
    const Kind kind = run_here(trial);
    std::fflush(stdout);
    _exit(static_cast<int>(kind));
  }
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) {
    const int code = WEXITSTATUS(status);
    if (code <= static_cast<int>(Kind::kWrong)) return static_cast<Kind>(code);
    std::printf("WRONG %s: its process ended with %d\n", trial.name.c_str(), code);
    return Kind::kWrong;
  }
  const char* how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "could not be started";
  std::printf("WRONG %s: its process: %s\n", trial.name.c_str(), how);
  return Kind::kWrong;
}

void run_counted(const Trial& trial, Totals& totals) {
  switch (run(trial)) {
    case Kind::kRight:
      ++totals.right;
      break;
    case Kind::kSensitive:
      ++totals.sensitive;
      break;
    case Kind::kWrong:
      ++totals.wrong;
      std::printf("%s\n", trial.text.c_str());
  }
}

// Every prototxt in the folder, with the data that found it and with new ones.
Result<void> run_kept(const std::string& folder, Totals& totals) {
  SPEEDO_ASSIGN(std::vector<std::filesystem::path> files, list_folder(folder));
  std::erase_if(files, [](const auto& file) { return file.extension() != ".prototxt"; });
  if (files.empty()) return Error{ErrorCode::kNotFound, folder + ": no prototxt"};
  for (const auto& file : files) {
    SPEEDO_ASSIGN(const std::string text, read_file(file));
    for (const std::uint64_t seed : test::seeds({1})) {
      run_counted({fmt::format("{}, data seed {}", file.filename().string(), seed), text, seed},
                  totals);
    }
  }
  return {};
}

int run_all(const Options& options) {
  set_log_level(LogLevel::kNothing);
  Totals kept, drawn;
  for (const std::string& folder : options.folders) {
    if (const auto done = run_kept(folder, kept); !done) {
      std::fprintf(stderr, "random_nets: %s\n", done.error().message.c_str());
      return 2;
    }
  }
  for (std::uint64_t seed = options.seed; seed - options.seed < options.count; ++seed) {
    run_counted({fmt::format("seed {}", seed), draw_net(seed), seed}, drawn);
  }
  print("kept", kept);
  print("drawn", drawn);
  const bool is_fit = drawn.sensitive <= std::max(2.0, kSensitiveShareMax * drawn.all());
  if (!is_fit) std::printf("FAIL: too many nets show nothing but large faults\n");
  const bool is_right = kept.wrong + drawn.wrong == 0 && kept.all() + drawn.all() > 0;
  return is_right && is_fit ? 0 : 1;
}

int main(int argc, char** argv) {
  Options options;
  options.count = test::is_long() ? 3000 : 150;
  CLI::App app("Compares nets on the CPU backend with the reference backend");
  app.add_option("--cpu-isa", options.kernels.isa, "Use no kernels above these")
      ->check(CLI::IsMember({"portable", "avx2", "avx512"}));
  app.add_flag("--no-onednn", options.kernels.no_onednn, "Compute as a build without oneDNN");
  app.add_flag("--deferred", options.kernels.deferred,
               "On a device that does nothing before it is waited for");
  CLI::Option* seed = app.add_option("--seed", options.seed,
                                     "Seed of the first random net (default: drawn, and printed)");
  app.add_option("--count", options.count, "Random nets; 150, or 3000 with SPEEDO_LONG set");
  app.add_option("folders", options.folders, "Folders of prototxts to run first");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (const auto kept = test::keep_to(options.kernels); !kept) {
    std::printf("random_nets: skipped: %s\n", kept.error().message.c_str());
    return test::kSkippedExitCode;
  }
  if (seed->count() == 0) options.seed = test::fresh_seed();
  return run_all(options);
}

}  // namespace
}  // namespace speedo::nets

int main(int argc, char** argv) { return speedo::nets::main(argc, argv); }
