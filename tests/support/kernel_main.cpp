// The main function of test programs that run under every choice of kernels, and of the device that
// runs them:
//   PROGRAM [--cpu-isa portable|avx2|avx512] [--no-onednn] [--deferred] [--shared-memory]
//     [--gpu N] [--gpu-double SEED] [Catch2's arguments]
// Exit code 77, skipped, where the machine lacks the instructions or the GPU; 1 also when the
// double found a wrong call.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/kernels.hpp"
#include "support/run_tests.hpp"

int main(int argc, char** argv) {
  speedo::test::KernelChoice choice;
  std::vector<char*> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--no-onednn") {
      choice.no_onednn = true;
    } else if (argument == "--deferred") {
      choice.deferred = true;
    } else if (argument == "--shared-memory") {
      choice.shared_memory = true;
    } else if (argument == "--gpu" && i + 1 < argc) {
      choice.gpu = std::atoi(argv[++i]);
    } else if (argument == "--gpu-double" && i + 1 < argc) {
      choice.gpu_double = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--cpu-isa" && i + 1 < argc) {
      choice.isa = argv[++i];
    } else {
      rest.push_back(argv[i]);
    }
  }
  if (const auto kept = speedo::test::keep_to(choice); !kept) {
    std::printf("skipped: %s\n", kept.error().message.c_str());
    return speedo::test::kSkippedExitCode;
  }
  const int code = speedo::test::run_tests(static_cast<int>(rest.size()), rest.data());
  return speedo::test::no_call_was_wrong() ? code : std::max(code, 1);
}
