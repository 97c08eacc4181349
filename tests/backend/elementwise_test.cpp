// Elementwise operations, the CPU backend against the reference.

#include <cmath>
#include <limits>

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
      require_conforming_vectors(kRounding, [&](Device& device) {
        float* y = beta == 0.0F ? device.blank(n) : device.put(b);
        device.backend().axpby(n, 1.7F, device.put(a), beta, y);
        return device.get(y, n);
      });
    }
  }
  SECTION("multiply, divide, square") {
    require_conforming_vectors(0.0, [&](Device& device) {
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
    for (const float exponent :
         {-0.75F, -0.5F, 0.5F, 2.0F, 3.0F, 7.0F, -2.0F, 11.0F, 0.3F, -1.7F, 1.0F, 0.0F}) {
      require_conforming_vectors(6e-7, [&](Device& device) {
        float* y = device.blank(n);
        device.backend().power(n, device.put(positive), exponent, y);
        return device.get(y, n);
      });
    }
  }
  SECTION("copy, fill, add_scalar") {
    require_conforming_vectors(0.0, [&](Device& device) {
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
  SECTION("power of negative numbers") {
    for (const float exponent : {2.0F, 3.0F, -1.0F, 9.0F}) {
      require_conforming_vectors(6e-7, [&](Device& device) {
        float* y = device.put(positive);
        device.backend().axpby(n, -1.0F, y, 0.0F, y);
        device.backend().power(n, y, exponent, y);
        return device.get(y, n);
      });
    }
  }
  SECTION("dropout") {
    for (const float ratio : {0.0F, 0.4F, 0.999F}) {
      require_conforming_vectors(0.0, [&](Device& device) {
        float* mask = device.blank(n);
        device.backend().dropout_mask(n, ratio, 0xfeedbeefULL, mask);
        return device.get(mask, n);
      });
    }
  }
  SECTION("maximum of three") {
    auto with_ties = b;
    for (std::size_t i = 0; i < with_ties.size(); i += 3) with_ties[i] = a[i];
    require_conforming_vectors(0.0, [&](Device& device) {
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
  SECTION("sgd_update and sgd_step") {
    const bool applies = GENERATE(false, true);
    require_conforming_vectors(kRounding, [&](Device& device) {
      float* history = device.put(a);
      float* grad = device.put(b);
      auto start = test_values(n, -1.0F, 1.0F, 9);
      if (!start.empty()) start[0] = 0.0F;  // its L1 part is zero
      float* weights = device.put(start);
      const SgdStep step{0.01F, 0.9F, 0.5F, 0.0005F, 0.001F};
      if (applies) {
        device.backend().sgd_step(n, step, weights, history, grad);
      } else {
        device.backend().sgd_update(n, step, weights, history, grad);
      }
      auto result = device.get(history, n);
      for (const float* more : {grad, weights}) {
        const auto values = device.get(more, n);
        result.insert(result.end(), values.begin(), values.end());
      }
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

TEST_CASE("powers at the ends of the range are those of std::pow") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{0.0F, 1e-40F, 1.0F, -2.0F, kInfinity, std::nanf(""), 3e38F};
  const auto n = static_cast<std::int64_t>(x.size());
  Device device(make_cpu_backend(1));
  for (const float exponent : {0.3F, -0.3F, 0.5F, -2.0F, 3.0F, 0.0F, 1.0F, 9.0F, 300.5F}) {
    float* y = device.put(x);
    device.backend().power(n, y, exponent, y);
    const auto got = device.get(y, n);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float expected = std::pow(x[i], exponent);
      CAPTURE(x[i], exponent, got[i], expected);
      REQUIRE((got[i] == Approx(expected) || (std::isnan(got[i]) && std::isnan(expected)) ||
               got[i] == expected));
    }
  }
}

}  // namespace
}  // namespace speedo
