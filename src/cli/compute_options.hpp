#pragma once

#include <optional>

#include <speedo/cpu/cpu_options.hpp>
#include <speedo/gpu/gpu_options.hpp>

namespace speedo {

inline constexpr int kComputeNiceMax = 19;
// Of local clusters: workers, master and store share the cores. At 0 a merge of LeNet waits some
// milliseconds for one.
inline constexpr int kLocalComputeNice = 5;

// Far more than a machine has.
inline constexpr int kGpuMax = 63;

// What the backends of a process are made of.
struct ComputeOptions {
  int threads = 0;  // of each backend; 0: as many as the process may use
  int parts = 0;    // that loops are divided into; 0, or fewer than threads: one a thread
  CpuPrecision precision = CpuPrecision::kFloat32;
  // The nice value of the threads that compute, over the process's own, 0..kComputeNiceMax. So the
  // exchange, which needs a core for moments only, gets it at once though every core computes.
  int nice = 0;
  std::optional<GpuOptions> gpu = std::nullopt;  // none: the CPU
  bool skip_bad_records = false;  // take the next record in place of one that cannot be read
};

}  // namespace speedo
