#include "data/parser/parser_processes.hpp"

#include <system_error>
#include <utility>

#include <speedo/base/assert.hpp>

#include "base/log.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

std::atomic<ParserProcesses*> employed = nullptr;

// Beside the program that runs; where it is installed; where it is built, for the tests.
fs::path find_program() {
  std::error_code code;
  const fs::path folder = fs::read_symlink("/proc/self/exe", code).parent_path();
  constexpr const char* kName = "speedo-parser";
  for (const char* place : {"../libexec/speedo", "../bin"}) {
    if (fs::exists(folder / kName, code)) break;
    const fs::path found = folder / place / kName;
    if (fs::exists(found, code)) return found;
  }
  return folder / kName;
}

HelperOptions helper_options(const ParserOptions& options) {
  return {.program = options.program.empty() ? find_program() : options.program,
          .memory_bytes = options.memory_bytes,
          .patience = options.patience};
}

}  // namespace

ParserProcesses::ParserProcesses(const ParserOptions& options)
    : use_(options.use), pool_(helper_options(options)), given_up_(use_ == ParserUse::kOff) {
  SPEEDO_ASSERT(employed.load() == nullptr);
  employed = this;
}

ParserProcesses::~ParserProcesses() { employed = nullptr; }

Result<std::optional<HelperLoan>> ParserProcesses::take() {
  std::call_once(tried_, [this] {
    if (use_ != ParserUse::kAuto) return;
    const auto first = pool_.take();
    if (first) return;
    SPEEDO_WARN(
        "Images and HDF5 files are read in this process, where a damaged one can end it: "
        "{} (--parser-process)",
        first.error().message);
    given_up_ = true;
  });
  if (given_up_) return std::optional<HelperLoan>();
  auto loan = pool_.take();
  if (loan) return std::optional<HelperLoan>(std::move(*loan));
  // Not of the input, whatever went wrong.
  return Error{loan.error().code == ErrorCode::kFull ? ErrorCode::kFull : ErrorCode::kUnavailable,
               loan.error().message + "; --parser-process off reads in this process"};
}

Result<std::optional<HelperLoan>> take_parser() {
  ParserProcesses* const parsers = employed.load();
  if (parsers == nullptr) return std::optional<HelperLoan>();
  return parsers->take();
}

HelperTotals parser_totals() {
  const ParserProcesses* const parsers = employed.load();
  return parsers == nullptr ? HelperTotals{} : parsers->totals();
}

std::int64_t take_parser_deaths() {
  ParserProcesses* const parsers = employed.load();
  return parsers == nullptr ? 0 : parsers->take_deaths();
}

}  // namespace speedo
