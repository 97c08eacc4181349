// The operations on vectors and small matrices, the CPU backend against the reference.

#include "backend/conformance.hpp"
#include "cpu/cpu_backend.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

// Around vector widths, one odd size that splits over threads, and nothing at all.
const std::vector<std::int64_t> kSizes{0, 1, 7, 16, 17, 63, 1000, 40009};

constexpr double kRounding = 1e-6;

TEST_CASE("elementwise operations agree with the reference") {
  const std::int64_t n = GENERATE(from_range(kSizes));
  const auto a = test_values(n, -2.0F, 2.0F, 1);
  const auto b = test_values(n, -2.0F, 2.0F, 2);
  const auto positive = test_values(n, 0.5F, 4.0F, 3);
  CAPTURE(n);

  SECTION("axpby") {
    for (const float beta : {0.0F, 1.0F, 0.3F}) {
      require_conforming(kRounding, [&](Device& device) {
        float* y = beta == 0.0F ? device.blank(n) : device.put(b);
        device.backend().axpby(n, 1.7F, device.put(a), beta, y);
        return device.get(y, n);
      });
    }
  }
  SECTION("multiply, divide, square") {
    require_conforming(0.0, [&](Device& device) {
      float* y = device.blank(n);
      float* z = device.put(a);
      device.backend().multiply(n, device.put(a), device.put(b), y);
      device.backend().divide(n, y, device.put(positive), y);
      device.backend().square(n, z, z);
      device.backend().multiply(n, z, y, y);
      return device.get(y, n);
    });
  }
  SECTION("power") {
    for (const float exponent : {-0.75F, -0.5F, 2.0F, 0.3F, 0.0F}) {
      require_conforming(6e-7, [&](Device& device) {
        float* y = device.blank(n);
        device.backend().power(n, device.put(positive), exponent, y);
        return device.get(y, n);
      });
    }
  }
  SECTION("copy, fill, add_scalar") {
    require_conforming(0.0, [&](Device& device) {
      float* y = device.blank(n);
      float* z = device.blank(n);
      device.backend().fill(n, 0.25F, z);
      device.backend().copy(n, device.put(a), y);
      device.backend().copy(n, y, y);
      device.backend().add_scalar(n, 3.0F, y);
      device.backend().multiply(n, y, z, y);
      return device.get(y, n);
    });
  }
  SECTION("sums") {
    require_conforming(1e-12, [&](Device& device) {
      const float* x = device.put(a);
      return std::vector<float>{static_cast<float>(device.backend().dot(n, x, device.put(b))),
                                static_cast<float>(device.backend().sum_abs(n, x))};
    });
  }
  SECTION("relu") {
    for (const float slope : {0.0F, 0.1F}) {
      require_conforming(0.0, [&](Device& device) {
        float* y = device.put(a);  // in place, as nets use it
        device.backend().relu_forward(n, slope, y, y);
        float* grad = device.put(b);
        device.backend().relu_backward(n, slope, y, grad, grad);
        auto result = device.get(y, n);
        const auto gradient = device.get(grad, n);
        result.insert(result.end(), gradient.begin(), gradient.end());
        return result;
      });
    }
  }
  SECTION("dropout") {
    for (const float ratio : {0.0F, 0.4F, 0.999F}) {
      require_conforming(0.0, [&](Device& device) {
        float* mask = device.blank(n);
        device.backend().dropout_mask(n, ratio, 0xfeedbeefULL, mask);
        return device.get(mask, n);
      });
    }
  }
  SECTION("maximum of three") {
    auto with_ties = b;
    for (std::size_t i = 0; i < with_ties.size(); i += 3) with_ties[i] = a[i];
    require_conforming(0.0, [&](Device& device) {
      float* mask = device.blank(n);
      float* y = device.blank(n);
      float* grad = device.blank(n);
      device.backend().max_forward(n, device.put(a), device.put(with_ties), true, 1.0F, mask, y);
      device.backend().max_forward(n, y, device.put(a), false, 2.0F, mask, y);
      device.backend().max_backward(n, mask, 1.0F, device.put(positive), grad);
      auto result = device.get(y, n);
      for (const float* more : {mask, grad}) {
        const auto values = device.get(more, n);
        result.insert(result.end(), values.begin(), values.end());
      }
      return result;
    });
  }
  SECTION("sgd_update") {
    require_conforming(kRounding, [&](Device& device) {
      float* history = device.put(a);
      float* grad = device.put(b);
      auto weights = test_values(n, -1.0F, 1.0F, 9);
      if (!weights.empty()) weights[0] = 0.0F;  // its L1 part is zero
      const SgdStep step{0.01F, 0.9F, 0.5F, 0.0005F, 0.001F};
      device.backend().sgd_update(n, step, device.put(weights), history, grad);
      auto result = device.get(history, n);
      const auto update = device.get(grad, n);
      result.insert(result.end(), update.begin(), update.end());
      return result;
    });
  }
}

TEST_CASE("the dropout share is the ratio") {
  Device device(make_cpu_backend(2));
  float* mask = device.blank(100000);
  device.backend().dropout_mask(100000, 0.3F, 77, mask);
  double kept = 0.0;
  for (const float value : device.get(mask, 100000)) kept += value > 0.0F ? 1.0 : 0.0;
  REQUIRE(kept == Approx(70000.0).margin(700.0));
}

TEST_CASE("row operations agree with the reference") {
  const auto [rows, columns] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {3, 7}, {64, 10}, {129, 500}, {0, 4}}));
  const auto x = test_values(rows * columns);
  const auto row = test_values(columns, -1.0F, 1.0F, 5);
  CAPTURE(rows, columns);
  require_conforming(5e-7, [&, r = rows, c = columns](Device& device) {
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

TEST_CASE("matrix products agree with the reference") {
  const auto [m, n, k] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>({{1, 1, 1},
                                                                                   {3, 5, 7},
                                                                                   {64, 10, 500},
                                                                                   {17, 129, 33},
                                                                                   {130, 70, 150},
                                                                                   {2, 300, 250},
                                                                                   {5, 4, 0},
                                                                                   {0, 3, 2}}));
  const auto a_op = GENERATE(Op::kNone, Op::kTranspose);
  const auto b_op = GENERATE(Op::kNone, Op::kTranspose);
  CAPTURE(m, n, k);
  for (const float beta : {0.0F, 1.0F}) {
    require_conforming(1e-6, [&, m = m, n = n, k = k](Device& device) {
      float* c = beta == 0.0F ? device.blank(m * n) : device.put(test_values(m * n, -1, 1, 3));
      device.backend().gemm(a_op, b_op, {m, n, k}, 0.7F, device.put(test_values(m * k, -1, 1, 1)),
                            device.put(test_values(k * n, -1, 1, 2)), beta, c);
      return device.get(c, m * n);
    });
  }
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
