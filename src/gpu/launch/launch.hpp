#pragma once

#include <cstddef>
#include <vector>

#include "gpu/launch/kernel.hpp"
#include "gpu/launch/queue.hpp"

// Included by sources that define kernels (.cu), which are compiled by nvcc, or as C++ where there
// is no CUDA.
namespace speedo::gpu {
namespace detail {

// The largest block: the compiler leaves each thread registers accordingly.
template <typename Kernel>
constexpr int threads_max() {
  if constexpr (requires { Kernel::kThreadsMax; }) {
    return Kernel::kThreadsMax;
  } else {
    return 256;
  }
}

#if defined(__CUDACC__)
template <typename Kernel>
__global__ void __launch_bounds__(threads_max<Kernel>()) run_kernel(const Kernel kernel) {
  extern __shared__ __align__(16) std::byte shared[];
  const Lane lane{static_cast<std::int64_t>(blockIdx.x), static_cast<std::int64_t>(gridDim.x),
                  static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x), shared};
  const int phases = kernel.phases();
  for (int phase = 0; phase < phases; ++phase) {
    if (phase > 0) __syncthreads();
    kernel.run(phase, lane);
  }
}
#endif

template <typename Kernel>
void run_on_host(const Grid& grid, const void* arguments) {
  const Kernel& kernel = *static_cast<const Kernel*>(arguments);
  std::vector<std::max_align_t> shared(grid.shared_bytes / sizeof(std::max_align_t) + 1);
  Lane lane{0, grid.blocks, 0, grid.threads, reinterpret_cast<std::byte*>(shared.data())};
  for (lane.block = 0; lane.block < grid.blocks; ++lane.block) {
    for (int phase = 0; phase < kernel.phases(); ++phase) {
      for (lane.thread = 0; lane.thread < grid.threads; ++lane.thread) kernel.run(phase, lane);
    }
  }
}

template <typename Kernel>
const void* device_function() {
#if defined(__CUDACC__)
  return reinterpret_cast<const void*>(&run_kernel<Kernel>);
#else
  return nullptr;
#endif
}

}  // namespace detail

// Queues the kernel. Kernel::kName names it to people; Kernel::kThreadsMax, where blocks are larger
// than 256 threads, says how large.
template <IsKernel Kernel>
void launch(Queue& queue, const Grid& grid, const Kernel& kernel) {
  static_assert(sizeof(Kernel) <= 4096, "CUDA takes no more arguments");
  static const KernelEntry entry{Kernel::kName, detail::device_function<Kernel>(),
                                 &detail::run_on_host<Kernel>, sizeof(Kernel),
                                 detail::threads_max<Kernel>()};
  queue.driver.launch(queue.stream, entry, grid, &kernel);
}

}  // namespace speedo::gpu
