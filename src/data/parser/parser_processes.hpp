#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>

#include <speedo/base/result.hpp>

#include "sandbox/helper_pool.hpp"

namespace speedo {

// Where libraries of others read images and HDF5 files.
enum class ParserUse {
  kAuto,  // in processes of their own; in this one, with a warning, where none can be started
  kOn,    // in processes of their own, or not at all
  kOff,   // in this one
};

inline constexpr std::uint64_t kParserMiBMin = 64, kParserMiBMax = 1048576;

struct ParserOptions {
  ParserUse use = ParserUse::kAuto;
  std::uint64_t memory_bytes = std::uint64_t{2} << 30U;  // of each process; see HelperOptions
  std::filesystem::path program = {};  // empty: speedo-parser, beside the program that runs
  std::chrono::milliseconds patience = HelperOptions{}.patience;
};

// While it lives, decode_image() and Hdf5Reader have parser processes do what libraries would do
// here. The first image or file starts the first one; then there are as many as read at once.
// Thread safety: made and destroyed while no other thread reads.
class ParserProcesses {
 public:
  // Requires: there is none.
  explicit ParserProcesses(const ParserOptions& options);
  ParserProcesses(const ParserProcesses&) = delete;
  ParserProcesses& operator=(const ParserProcesses&) = delete;
  ~ParserProcesses();

  HelperTotals totals() const { return pool_.totals(); }
  std::int64_t take_deaths() { return pool_.take_deaths(); }

 private:
  friend Result<std::optional<HelperLoan>> take_parser();
  Result<std::optional<HelperLoan>> take();

  const ParserUse use_;
  HelperPool pool_;
  std::once_flag tried_;
  std::atomic<bool> given_up_{false};
};

// A parser for somebody who is to read something; none: read it in this process. Errors, none of
// them the input's: kUnavailable, kNotFound, kUnsupported, kFull. Any thread.
Result<std::optional<HelperLoan>> take_parser();

// Of the processes that there are; zeros if there are none.
HelperTotals parser_totals();
// HelperPool::take_deaths() of theirs. Any thread.
std::int64_t take_parser_deaths();

}  // namespace speedo
