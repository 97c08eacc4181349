// Elementwise operations, the CPU backend against the reference.

#include <cmath>
#include <limits>

#include "backend/conformance.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"

namespace speedo {
namespace {

// Around vector widths, one odd size that splits over threads, and nothing at all.
const std::vector<std::int64_t> kSizes{0, 1, 7, 16, 17, 63, 1000, 40009};

constexpr double kRounding = 1e-6;

// Two steps of a rule, of which the second finds histories.
std::vector<float> adaptive_results(Workbench& bench, AdaptiveKind kind, std::int64_t n,
                                    bool applies) {
  const bool has_second = kind == AdaptiveKind::kAdaDelta || kind == AdaptiveKind::kAdam;
  float* first = bench.put(test_values(n, 0.1F, 1.0F, 4));
  float* second = has_second ? bench.put(test_values(n, 0.1F, 1.0F, 5)) : nullptr;
  auto start = test_values(n, -1.0F, 1.0F, 9);
  if (!start.empty()) start[0] = 0.0F;  // its L1 part is zero
  float* weights = bench.put(start);
  const SgdStep base{0.01F, 0.9F, 0.5F, 0.0005F, 0.001F, applies ? 1.0F : -1.0F};
  const AdaptiveStep step{kind, base, 0.95F, 1e-3F};
  std::vector<float> result;
  for (const int seed : {6, 7}) {
    float* grad = bench.put(test_values(n, -2.0F, 2.0F, seed));
    if (applies) {
      bench.backend().adaptive_step(n, step, weights, {first, second}, grad);
    } else {
      bench.backend().adaptive_update(n, step, weights, {first, second}, grad);
    }
    result = join(std::move(result), bench.get(grad, n));
  }
  for (const float* more : {static_cast<const float*>(first), static_cast<const float*>(second),
                            static_cast<const float*>(weights)}) {
    if (more != nullptr) result = join(std::move(result), bench.get(more, n));
  }
  return result;
}

TEST_CASE("elementwise operations agree with the reference") {
  const std::int64_t n = GENERATE(from_range(kSizes));
  const auto a = test_values(n, -2.0F, 2.0F, 1);
  const auto b = test_values(n, -2.0F, 2.0F, 2);
  const auto positive = test_values(n, 0.5F, 4.0F, 3);
  CAPTURE(n);

  SECTION("axpby") {
    for (const float beta : {0.0F, 1.0F, 0.3F}) {
      require_conforming_vectors(kRounding, [&](Workbench& bench) {
        float* y = beta == 0.0F ? bench.blank(n) : bench.put(b);
        bench.backend().axpby(n, 1.7F, bench.put(a), beta, y);
        return bench.get(y, n);
      });
    }
  }
  SECTION("product, quotient, square") {
    require_conforming_vectors(0.0, [&](Workbench& bench) {
      float* y = bench.blank(n);
      float* z = bench.put(a);
      bench.backend().zip({BinaryKind::kProduct}, n, {bench.put(a), bench.put(b), y});
      bench.backend().zip({BinaryKind::kQuotient}, n, {y, bench.put(positive), y});
      bench.backend().map(power(2.0F), n, z, z);
      bench.backend().zip({BinaryKind::kProduct}, n, {z, y, y});
      return bench.get(y, n);
    });
  }
  SECTION("power") {
    for (const float exponent :
         {-0.75F, -0.5F, 0.5F, 2.0F, 3.0F, 7.0F, -2.0F, 11.0F, 0.3F, -1.7F, 1.0F, 0.0F}) {
      require_conforming_vectors(6e-7, [&](Workbench& bench) {
        float* y = bench.blank(n);
        bench.backend().map(power(exponent), n, bench.put(positive), y);
        return bench.get(y, n);
      });
    }
  }
  SECTION("sums of two, and any operation with an activation") {
    const UnaryOp activation = GENERATE(UnaryOp{UnaryKind::kRelu}, UnaryOp{UnaryKind::kSigmoid},
                                        UnaryOp{UnaryKind::kElu, 0.5F});
    require_conforming_vectors(kRounding, [&](Workbench& bench) {
      float* sum = bench.blank(n);
      float* product = bench.put(a);
      bench.backend().zip({BinaryKind::kSum, 0.5F, -2.0F, activation}, n,
                          {bench.put(a), bench.put(b), sum});
      bench.backend().zip({BinaryKind::kProduct, 1.0F, 1.0F, activation}, n,
                          {product, bench.put(b), product});
      float* alone = bench.blank(n);
      bench.backend().zip({BinaryKind::kSum, 3.0F, 0.0F}, n, {bench.put(a), nullptr, alone});
      return join(join(bench.get(sum, n), bench.get(product, n)), bench.get(alone, n));
    });
  }
  SECTION("copy, fill, a sum with a number") {
    require_conforming_vectors(0.0, [&](Workbench& bench) {
      float* y = bench.blank(n);
      float* z = bench.blank(n);
      bench.backend().fill(n, 0.25F, z);
      bench.backend().copy(n, bench.put(a), y);
      bench.backend().copy(n, y, y);
      bench.backend().map(affine(1.0F, 3.0F), n, y, y);
      bench.backend().zip({BinaryKind::kProduct}, n, {y, z, y});
      return bench.get(y, n);
    });
  }
  SECTION("power of negative numbers") {
    for (const float exponent : {2.0F, 3.0F, -1.0F, 9.0F}) {
      require_conforming_vectors(6e-7, [&](Workbench& bench) {
        float* y = bench.put(positive);
        bench.backend().axpby(n, -1.0F, y, 0.0F, y);
        bench.backend().map(power(exponent), n, y, y);
        return bench.get(y, n);
      });
    }
  }
  SECTION("maximum of three") {
    auto with_ties = b;
    for (std::size_t i = 0; i < with_ties.size(); i += 3) with_ties[i] = a[i];
    require_conforming_vectors(0.0, [&](Workbench& bench) {
      float* winners = bench.blank(n);
      float* y = bench.blank(n);
      float* grad = bench.blank(n);
      float* without = bench.blank(n);
      const BinaryOp maximum{BinaryKind::kMaximum, 0.0F, 1.0F};
      bench.backend().zip(maximum, n, {bench.put(a), bench.put(with_ties), y, winners});
      bench.backend().zip(maximum, n, {bench.put(a), bench.put(with_ties), without});
      const BinaryOp later{BinaryKind::kMaximum, 2.0F, -1.0F};
      bench.backend().zip(later, n, {bench.put(a), y, y, winners});
      bench.backend().zip({BinaryKind::kChosen, 1.0F}, n, {winners, bench.put(positive), grad});
      auto result = bench.get(y, n);
      for (const float* more : {winners, grad, without}) {
        const auto values = bench.get(more, n);
        result.insert(result.end(), values.begin(), values.end());
      }
      return result;
    });
  }
  SECTION("sgd_update and sgd_step") {
    const bool applies = GENERATE(false, true);
    require_conforming_vectors(kRounding, [&](Workbench& bench) {
      float* history = bench.put(a);
      float* grad = bench.put(b);
      auto start = test_values(n, -1.0F, 1.0F, 9);
      if (!start.empty()) start[0] = 0.0F;  // its L1 part is zero
      float* weights = bench.put(start);
      const SgdStep step{0.01F, 0.9F, 0.5F, 0.0005F, 0.001F, applies ? 1.0F : -1.0F};
      if (applies) {
        bench.backend().sgd_step(n, step, weights, history, grad);
      } else {
        bench.backend().sgd_update(n, step, weights, history, grad);
      }
      auto result = bench.get(history, n);
      for (const float* more : {grad, weights}) {
        const auto values = bench.get(more, n);
        result.insert(result.end(), values.begin(), values.end());
      }
      return result;
    });
  }
  SECTION("adaptive_update and adaptive_step") {
    const bool applies = GENERATE(false, true);
    for (const AdaptiveKind kind : {AdaptiveKind::kAdaGrad, AdaptiveKind::kRmsProp,
                                    AdaptiveKind::kAdaDelta, AdaptiveKind::kAdam}) {
      require_conforming_vectors(kRounding, [&](Workbench& bench) {
        return adaptive_results(bench, kind, n, applies);
      });
    }
  }
}

TEST_CASE("squares stay finite and are never negative, whatever comes in") {
  Workbench bench(test::make_backend(1));
  const std::vector<float> gradients{3e20F, -3e20F, 0.0F, 1.0F};
  const auto n = static_cast<std::int64_t>(gradients.size());
  for (const AdaptiveKind kind : {AdaptiveKind::kAdaGrad, AdaptiveKind::kRmsProp,
                                  AdaptiveKind::kAdaDelta, AdaptiveKind::kAdam}) {
    float* first = bench.put({-1.0F, -1.0F, -1.0F, -5.0F});
    float* second = bench.put({-1.0F, -1.0F, -1.0F, -5.0F});
    float* weights = bench.put(std::vector<float>(gradients.size()));
    float* grad = bench.put(gradients);
    const AdaptiveStep step{kind, {.rate = 0.1F, .momentum = 0.9F}, 0.9F, 1e-8F};
    bench.backend().adaptive_step(n, step, weights, {first, second}, grad);
    CAPTURE(static_cast<int>(kind));
    for (const float* array : {first, second, weights, grad}) {
      for (const float value : bench.get(array, n)) REQUIRE(std::isfinite(value));
    }
    const float* squares = kind == AdaptiveKind::kAdam ? second : first;
    for (const float value : bench.get(squares, n)) REQUIRE(value >= 0.0F);
  }
}

TEST_CASE("powers at the ends of the range are those of std::pow") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{0.0F, 1e-40F, 1.0F, -2.0F, kInfinity, std::nanf(""), 3e38F};
  const auto n = static_cast<std::int64_t>(x.size());
  Workbench bench(test::make_backend(1));
  for (const float exponent : {0.3F, -0.3F, 0.5F, -2.0F, 3.0F, 0.0F, 1.0F, 9.0F, 300.5F}) {
    float* y = bench.put(x);
    bench.backend().map(power(exponent), n, y, y);
    const auto got = bench.get(y, n);
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
