// Configuration files of any program, and the stages of a hybrid, as TOML and as one argument.
#include "cli/hybrid.hpp"
#include "cli/options/config_file.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(config)(Bytes bytes) {
  Input input(bytes);
  const unsigned which = input.byte() % 6U;
  if (which == 5) {
    static_cast<void>(parse_hybrid(input.text()));
    return;
  }
  const MemoryFile file(input.left());
  if (which == 4) {
    static_cast<void>(read_hybrid_file(file.path()));
    return;
  }
  constexpr Program kPrograms[] = {Program::kMaster, Program::kWorker, Program::kRun,
                                   Program::kTrain};
  OptionValues values(kPrograms[which]);
  static_cast<void>(read_config_file(file.path(), values));
}

}  // namespace
}  // namespace speedo::fuzz
