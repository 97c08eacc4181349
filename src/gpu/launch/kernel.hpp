#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Functions that run in kernels, and on the host where a kernel is tried without a device.
#if defined(__CUDACC__)
#define SPEEDO_HOST_DEVICE __host__ __device__
#else
#define SPEEDO_HOST_DEVICE
#endif

namespace speedo::gpu {

// How many threads run a kernel. Requires: blocks and threads above 0, threads a multiple of 32 and
// at most 1024.
struct Grid {
  std::int64_t blocks = 1;
  int threads = 256;
  std::size_t shared_bytes = 0;  // of each block, uninitialised
};

// Where one thread of a kernel is.
struct Lane {
  std::int64_t block = 0, blocks = 1;
  int thread = 0, threads = 1;
  std::byte* shared = nullptr;  // the block's, 16-byte aligned

  // A loop over n elements by all threads: for (i = first(); i < n; i += stride()).
  SPEEDO_HOST_DEVICE std::int64_t first() const { return block * threads + thread; }
  SPEEDO_HOST_DEVICE std::int64_t stride() const { return blocks * threads; }
};

// A kernel is a trivially copyable struct whose members are its arguments, pointers to device
// memory among them, 8-byte aligned. It has
//   SPEEDO_HOST_DEVICE int phases() const;                      how often run() is called
//   SPEEDO_HOST_DEVICE void run(int phase, const Lane&) const;
// All threads of a block end a phase before one of them begins the next: between phases only the
// block's shared memory and device memory keep values. Blocks have no order. Within a phase threads
// may run in any order, one after another too, so that none may wait for another one.
template <typename Kernel>
concept IsKernel = std::is_trivially_copyable_v<Kernel>;

// In which order the host runs blocks and the threads of a phase: whoever relies on one is found by
// the other.
enum class HostOrder { kUp, kDown };

// What a driver launches: the same kernel, for the device and for the host.
struct KernelEntry {
  const char* name = nullptr;
  const void* device = nullptr;  // a __global__ function; null where built without CUDA
  // False: it wrote beyond its shared memory.
  bool (*host)(const Grid&, const void* kernel, HostOrder) = nullptr;
  std::size_t bytes = 0;  // of the struct
  int threads_max = 256;  // of a block
};

}  // namespace speedo::gpu
