// Matrices, sums and memory, the CPU backend against the reference.

#include <algorithm>
#include <limits>

#include "backend/conformance.hpp"
#include "cpu/cpu_backend.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

// Around vector widths, one odd size that splits over threads, and nothing at all.
const std::vector<std::int64_t> kVectorSizes{0, 1, 7, 16, 17, 63, 1000, 40009, 500009};

TEST_CASE("sums over vectors agree with the reference") {
  const std::int64_t n = GENERATE(from_range(kVectorSizes));
  const auto a = test_values(n, -2.0F, 2.0F, 1);
  const auto b = test_values(n, -2.0F, 2.0F, 2);
  require_conforming_vectors(1e-7, [&](Device& device) {
    const float* x = device.put(a);
    return std::vector<float>{static_cast<float>(device.backend().dot(n, x, device.put(b))),
                              static_cast<float>(device.backend().sum_abs(n, x))};
  });
  const auto run = [&](int threads) {
    Device device(make_cpu_backend(threads));
    const float* x = device.put(a);
    return std::pair(device.backend().dot(n, x, device.put(b)), device.backend().sum_abs(n, x));
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
  Device device(make_cpu_backend(2));
  CHECK(device.backend().all_finite(n, device.put(values)));
  for (std::int64_t at = 0; at < n; at += std::max<std::int64_t>(1, n / 7)) {
    auto damaged = values;
    damaged[static_cast<std::size_t>(at)] = bad;
    CHECK_FALSE(device.backend().all_finite(n, device.put(damaged)));
  }
}

TEST_CASE("row operations agree with the reference") {
  const auto [rows, columns] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {3, 7}, {64, 10}, {129, 500}, {0, 4}}));
  const auto x = test_values(rows * columns);
  const auto row = test_values(columns, -1.0F, 1.0F, 5);
  CAPTURE(rows, columns);
  require_conforming_vectors(5e-7, [&, r = rows, c = columns](Device& device) {
    float* y = device.put(x);
    float* sum = device.put(row);
    float* wide = device.put(std::vector<float>(static_cast<std::size_t>(r * (c + 3)), 0.5F));
    device.backend().add_row(r, c, device.put(row), y);
    device.backend().sum_rows(r, c, y, sum);
    device.backend().copy_rows(r, c, y, c, wide + 2, c + 3);
    auto result = device.get(wide, r * (c + 3));
    const auto sums = device.get(sum, c);
    result.insert(result.end(), sums.begin(), sums.end());
    return result;
  });
}

TEST_CASE("memory is zero, aligned, and refused by name when there is none") {
  const auto backend = make_cpu_backend(2);
  auto buffer = backend->allocate(1000);
  REQUIRE(buffer.has_value());
  REQUIRE(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64 == 0);
  for (int i = 0; i < 250; ++i) REQUIRE(buffer->as_floats()[i] == 0.0F);
  REQUIRE(backend->allocate(0).has_value());
  std::vector<std::size_t> too_many{SIZE_MAX};
#ifndef SPEEDO_SANITIZED  // The sanitizer ends the program where the system's allocator says no.
  too_many.push_back(SIZE_MAX / 2);
  too_many.push_back(std::size_t{1} << 60U);
#endif
  for (const std::size_t bytes : too_many) {
    const auto refused = backend->allocate(bytes);
    REQUIRE_FALSE(refused.has_value());
    REQUIRE(refused.error().code == ErrorCode::kFull);
    REQUIRE(refused.error().message.find(std::to_string(bytes)) != std::string::npos);
  }
}

}  // namespace
}  // namespace speedo
