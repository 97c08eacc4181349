#include "measure/calibrate/calibrate_products.hpp"

#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/clock.hpp>

#include "measure/step_timer.hpp"

namespace speedo {

namespace {

constexpr std::int64_t kProductWorkers = 4;
constexpr int kProductRunsMin = 3;

}  // namespace

Result<double> measure_product(Backend& backend, const FactorShape& shape, double seconds) {
  const std::int64_t rows = kProductWorkers * shape.rows;
  const std::int64_t factors = rows * (shape.height + shape.width);
  const std::int64_t count = factors + shape.height * shape.width;
  SPEEDO_ASSIGN(Buffer buffer,
                backend.device().allocate(static_cast<std::size_t>(count) * sizeof(float)));
  float* const left = buffer.as_floats();
  float* const right = left + rows * shape.height;
  backend.fill(count, 0.5F, left);
  std::vector<double> times;
  const Instant start = steady_clock().now();
  for (int run = 0; run < kProductRunsMin || seconds_since(start) < seconds; ++run) {
    const Instant before = steady_clock().now();
    backend.gemm({Op::kTranspose, Op::kNone, {shape.height, shape.width, rows}, 1.0F, 0.0F}, left,
                 right, left + factors);
    backend.device().synchronize();
    times.push_back(seconds_since(before) / static_cast<double>(kProductWorkers));
  }
  return median(std::move(times));
}

}  // namespace speedo
