// How kernels run on the host: phases, lanes, grids.

#include "gpu/launch/kernel.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include "gpu/launch/launch.hpp"
#include "support/catch.hpp"

namespace speedo::gpu {
namespace {

// The sum of each block's share, by a tree in shared memory.
struct BlockSums {
  static constexpr const char* kName = "block_sums";
  std::int64_t n = 0;
  const double* x = nullptr;
  double* sums = nullptr;
  int threads = 0;

  SPEEDO_HOST_DEVICE int phases() const {
    int count = 2;
    for (int width = threads / 2; width > 0; width /= 2) ++count;
    return count;
  }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    auto* const partial = reinterpret_cast<double*>(lane.shared);
    const int width = lane.threads >> phase;
    if (phase == 0) {
      partial[lane.thread] = 0.0;
      for (std::int64_t i = lane.first(); i < n; i += lane.stride()) partial[lane.thread] += x[i];
    } else if (width > 0) {
      if (lane.thread < width) partial[lane.thread] += partial[lane.thread + width];
    } else if (lane.thread == 0) {
      sums[lane.block] = partial[0];
    }
  }
};

TEST_CASE("phases of a block see what the phase before left in shared memory") {
  const std::int64_t n = GENERATE(1, 63, 64, 1000);
  const std::int64_t blocks = GENERATE(1, 3);
  std::vector<double> x(static_cast<std::size_t>(n));
  std::iota(x.begin(), x.end(), 1.0);
  std::vector<double> sums(static_cast<std::size_t>(blocks), -1.0);
  const Grid grid{blocks, 64, 64 * sizeof(double)};
  const BlockSums kernel{n, x.data(), sums.data(), grid.threads};
  const auto order = GENERATE(HostOrder::kUp, HostOrder::kDown);
  CHECK(detail::run_on_host<BlockSums>(grid, &kernel, order));
  const auto count = static_cast<double>(n);
  CHECK(std::accumulate(sums.begin(), sums.end(), 0.0) == count * (count + 1.0) / 2.0);
}

TEST_CASE("a kernel that writes behind its shared memory is found") {
  std::vector<double> x(1, 1.0), sums(1);
  const BlockSums kernel{1, x.data(), sums.data(), 64};
  CHECK_FALSE(
      detail::run_on_host<BlockSums>({1, 64, 63 * sizeof(double)}, &kernel, HostOrder::kUp));
}

TEST_CASE("grids have a thread for each element, or threads take several") {
  for (const std::int64_t n : {1, 255, 256, 257, 4096, 100'000'000}) {
    const Grid grid = grid_for(n);
    CAPTURE(n, grid.blocks, grid.threads);
    CHECK(grid.blocks >= 1);
    CHECK((grid.blocks * grid.threads >= n || grid.blocks == 16384));
    CHECK((grid.blocks - 1) * grid.threads < n);
  }
  CHECK(grid_for(1025, 4).blocks == 2);
}

}  // namespace
}  // namespace speedo::gpu
