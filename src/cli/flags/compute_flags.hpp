#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/compute_options.hpp"
#include "cli/options/option_values.hpp"

namespace speedo {

// What computing may use, --threads, --cpu-isa, --precision, --gpu, --device and
// --cuda-graphs, and --on-bad-record.
struct ComputeFlags {
  int threads = 0;  // 0: not given
  std::string isa;  // empty: the best that the machine has
  std::string precision = "f32";
  std::optional<int> gpu;
  std::string device = "cpu";  // or gpu, or gpu:N
  bool device_given = false;   // by --gpu or --device
  bool cpu_given = false;      // by --device cpu
  bool graphs = true;          // --cuda-graphs
  bool skip_bad_records = false;
  bool pinned = false;  // --deterministic: kernels that give every machine the same bits
};

// Of --gpu and --device the one whose source goes before the other's counts alone.
ComputeFlags compute_flags(const OptionValues& values);

// --on-bad-record, of whichever program.
bool skips_bad_records(const OptionValues& values);

// Limits the kernels of this process as the flags say, and returns what its backends are made of.
// To be called before there is one. Errors: kUsage, naming what the machine lacks; as
// gpu_devices().
Result<ComputeOptions> settle(const ComputeFlags& flags);

// The number of the GPU that the flags ask for; none: the CPU. Error: kUsage, if --device is
// neither cpu nor a GPU, or says another one than --gpu.
Result<std::optional<int>> gpu_of(const ComputeFlags& flags);

// Whether gpu_of() has nothing against the flags.
Result<void> check_device(const ComputeFlags& flags);

// Refuses a --precision that workers do not have: what one of them drops as beyond float16's range,
// a round would lose. Error: kUsage.
Result<void> check_worker_precision(const ComputeFlags& flags);

// Refuses a --threads that is less than one for each of `workers`. Error: kUsage.
Result<void> check_thread_count(const ComputeFlags& flags, std::uint64_t workers);

// The flags as arguments for another process, without --threads.
std::vector<std::string> to_arguments(const ComputeFlags& flags);

// "Use CPU." or "Use GPU with device ID 0", as Caffe says it when it tests and measures.
std::string caffe_sentence(const ComputeOptions& options);

// What a worker or a master computes on: "cpu", or "gpu:0 NVIDIA H200, tf32" (of float32, without
// the precision). CPUs have the same products in all their precisions.
std::string device_text(const ComputeOptions& options);

// "2 threads, avx512 kernels, float32", for the log.
std::string describe(const ComputeOptions& options);

}  // namespace speedo
