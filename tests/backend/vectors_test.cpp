// Matrices and sums, the CPU backend against the reference.

#include <algorithm>
#include <limits>

#include "backend/conformance.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"

namespace speedo {
namespace {

// Around vector widths, one odd size that splits over threads, and nothing at all.
const std::vector<std::int64_t> kVectorSizes{0, 1, 7, 16, 17, 63, 1000, 40009, 500009};

TEST_CASE("sums over vectors agree with the reference") {
  const std::int64_t n = GENERATE(from_range(kVectorSizes));
  const auto a = test_values(n, -2.0F, 2.0F, 1);
  const auto b = test_values(n, -2.0F, 2.0F, 2);
  require_conforming_vectors(1e-7, [&](Workbench& bench) {
    const float* x = bench.put(a);
    return std::vector<float>{
        static_cast<float>(bench.backend().dot(n, x, bench.put(b))),
        static_cast<float>(bench.backend().sum_abs(n, x)),
        static_cast<float>(bench.backend().reduce(ReduceOp::kSum, n, x, nullptr)),
        static_cast<float>(bench.backend().reduce(ReduceOp::kSquareSum, n, x, nullptr))};
  });
  const auto run = [&](int threads) {
    Workbench bench(test::make_backend(threads));
    const float* x = bench.put(a);
    return std::pair(bench.backend().dot(n, x, bench.put(b)), bench.backend().sum_abs(n, x));
  };
  REQUIRE(run(1) == run(2));
  REQUIRE(run(1) == run(3));
}

TEST_CASE("what is not finite is found wherever it is") {
  const std::int64_t n = GENERATE(from_range(kVectorSizes));
  const float bad = GENERATE(std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN());
  auto values = test_values(n, -2.0F, 2.0F, 1);
  if (n > 0) values[0] = std::numeric_limits<float>::max();
  Workbench bench(test::make_backend(2));
  CHECK(bench.backend().all_finite(n, bench.put(values)));
  for (std::int64_t at = 0; at < n; at += std::max<std::int64_t>(1, n / 7)) {
    auto damaged = values;
    damaged[static_cast<std::size_t>(at)] = bad;
    CHECK_FALSE(bench.backend().all_finite(n, bench.put(damaged)));
  }
}

TEST_CASE("row operations agree with the reference") {
  const auto [rows, columns] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {3, 7}, {64, 10}, {129, 500}, {0, 4}}));
  const auto x = test_values(rows * columns);
  const auto row = test_values(columns, -1.0F, 1.0F, 5);
  CAPTURE(rows, columns);
  require_conforming_vectors(5e-7, [&, r = rows, c = columns](Workbench& bench) {
    float* y = bench.put(x);
    float* sum = bench.put(row);
    const std::int64_t wide_count = 2 + r * (c + 3);
    float* wide = bench.put(std::vector<float>(static_cast<std::size_t>(wide_count), 0.5F));
    const ChannelView view{{r, c, 1}, {}};
    bench.backend().scale_channels(view, {nullptr, bench.put(row)}, y, y);
    bench.backend().sum_channels(view, nullptr, y, nullptr, sum);
    bench.backend().copy_rows(r, c, y, c, wide + 2, c + 3);
    auto result = bench.get(wide, wide_count);
    const auto sums = bench.get(sum, c);
    result.insert(result.end(), sums.begin(), sums.end());
    return result;
  });
}

}  // namespace
}  // namespace speedo
