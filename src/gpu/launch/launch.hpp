#pragma once

#include <algorithm>
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
__global__ void __launch_bounds__(threads_max<Kernel>()) run_kernel(
    const __grid_constant__ Kernel kernel) {
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

// A block's shared memory holds NaNs at first, and a zone behind it that nobody may write.
template <typename Kernel>
bool run_on_host(const Grid& grid, const void* arguments, HostOrder order) {
  constexpr std::size_t kZone = 256;
  constexpr std::byte kUnset{0xff};
  const Kernel& kernel = *static_cast<const Kernel*>(arguments);
  std::vector<std::max_align_t> storage((grid.shared_bytes + kZone) / sizeof(std::max_align_t) + 1);
  std::byte* const shared = reinterpret_cast<std::byte*>(storage.data());
  const auto place = [order](std::int64_t i, std::int64_t n) {
    return order == HostOrder::kUp ? i : n - 1 - i;
  };
  bool is_within = true;
  for (std::int64_t b = 0; b < grid.blocks; ++b) {
    std::fill_n(shared, grid.shared_bytes + kZone, kUnset);
    Lane lane{place(b, grid.blocks), grid.blocks, 0, grid.threads, shared};
    for (int phase = 0; phase < kernel.phases(); ++phase) {
      for (int t = 0; t < grid.threads; ++t) {
        lane.thread = static_cast<int>(place(t, grid.threads));
        kernel.run(phase, lane);
      }
    }
    is_within =
        is_within && std::all_of(shared + grid.shared_bytes, shared + grid.shared_bytes + kZone,
                                 [](std::byte each) { return each == kUnset; });
  }
  return is_within;
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
  Kernel arguments = kernel;
#if defined(__GNUC__) && !defined(__clang__)
  // What lies between members is left from other work, and might be taken for addresses.
  __builtin_clear_padding(&arguments);
#endif
  queue.driver.launch(queue.stream, entry, grid, &arguments);
}

}  // namespace speedo::gpu
