#pragma once

namespace speedo {

// In what precision products are computed. kBfloat16: convolutions for which oneDNN has such
// kernels round their operands to bfloat16 and sum in float32; what is stored stays float32.
enum class CpuPrecision { kFloat32, kBfloat16 };

struct CpuOptions {
  int threads = 0;  // how many compute, the caller's included; 0: default_threads()
  CpuPrecision precision = CpuPrecision::kFloat32;
  // Into how many parts work is divided, at least as many as threads; the order of sums follows
  // from them alone. Each has scratch memory of its own. 0: as many as threads.
  int parts = 0;
};

// Backends with so many parts give the same bits with any number of threads up to it.
inline constexpr int kPinnedParts = 8;

// How many threads this process may keep busy: the processors that it may run on, at most what its
// control group's quota allows (rounded up) and OPENBLAS_NUM_THREADS, where that is set. At least
// 1, at most kCpuThreadsMax.
int default_threads();

inline constexpr int kCpuThreadsMax = 256;

}  // namespace speedo
