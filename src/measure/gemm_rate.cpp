#include "measure/gemm_rate.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/clock.hpp>

namespace speedo {

namespace {

constexpr std::int64_t kSize = 1024;
constexpr int kRunsMin = 4;

}  // namespace

Result<double> measure_gemm_rate(Backend& backend, double seconds) {
  constexpr std::int64_t count = kSize * kSize;
  SPEEDO_ASSIGN(Buffer buffer, backend.device().allocate(3 * count * sizeof(float)));
  float* a = buffer.as_floats();
  backend.fill(3 * count, 0.5F, a);
  double best = 0.0;
  const Instant start = steady_clock().now();
  for (int run = 0; run < kRunsMin || seconds_since(start) < seconds; ++run) {
    const Instant before = steady_clock().now();
    backend.gemm({Op::kNone, Op::kNone, {kSize, kSize, kSize}, 1.0F, 0.0F}, a, a + count,
                 a + 2 * count);
    backend.device().synchronize();
    best = std::max(best, 2.0 * kSize * kSize * kSize / seconds_since(before) / 1e9);
  }
  return best;
}

}  // namespace speedo
