#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/compute_options.hpp"
#include "cli/options/option_values.hpp"

namespace speedo {

// What computing may use, --threads, --cpu-isa and --precision, and --on-bad-record.
struct ComputeFlags {
  int threads = 0;  // 0: not given
  std::string isa;  // empty: the best that the machine has
  std::string precision = "f32";
  bool skip_bad_records = false;
  bool pinned = false;  // --deterministic: kernels that give every machine the same bits
};

ComputeFlags compute_flags(const OptionValues& values);

// --on-bad-record, of whichever program.
bool skips_bad_records(const OptionValues& values);

// Limits the kernels of this process as the flags say, and returns what its backends are made of.
// To be called before there is one. Error: kUsage, naming what the machine lacks.
Result<ComputeOptions> settle(const ComputeFlags& flags);

// Refuses a --threads that is less than one for each of `workers`. Error: kUsage.
Result<void> check_thread_count(const ComputeFlags& flags, std::uint64_t workers);

// The flags as arguments for another process, without --threads.
std::vector<std::string> to_arguments(const ComputeFlags& flags);

// "2 threads, avx512 kernels, float32", for the log.
std::string describe(const ComputeOptions& options);

}  // namespace speedo
