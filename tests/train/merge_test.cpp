// The arithmetic of merging against plain loops in double precision.

#include <speedo/train/merge.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <speedo/base/random.hpp>

#include "support/catch.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

// Lengths around the widths of vector registers.
const std::vector<std::size_t> kLengths = {0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 64, 1000, 4099};
const float kBad[] = {std::numeric_limits<float>::quiet_NaN(),
                      std::numeric_limits<float>::infinity(),
                      -std::numeric_limits<float>::infinity()};

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = random.uniform(-1.0F, 1.0F);
  }
  return values;
}

// One rounding of the product and one of the sum.
void require_near(float value, double expected) {
  REQUIRE(std::fabs(static_cast<double>(value) - expected) <= 2e-7 * (1.0 + std::fabs(expected)));
}

// Calls visit(values) with each number that is not finite in the middle; not if there is none.
template <class Visit>
void for_each_spoilt(const std::vector<float>& values, const Visit& visit) {
  if (values.empty()) return;
  for (const float bad : kBad) {
    auto spoilt = values;
    spoilt[values.size() / 2] = bad;
    visit(spoilt);
  }
}

}  // namespace

TEST_CASE("merge_add", "[merge]") {
  const std::uint64_t base = GENERATE(from_range(test::seeds({0})));
  CAPTURE(base);
  for (const std::size_t n : kLengths) {
    const auto w = random_values(n, base + 1), c = random_values(n, base + 2);
    std::vector<float> target(n);
    REQUIRE(merge_add(w, c, 0.3F, target));
    for (std::size_t i = 0; i < n; ++i) {
      require_near(target[i], double{w[i]} + double{0.3F} * double{c[i]});
    }
    // In place: the same bits.
    std::vector<float> in_place = w;
    REQUIRE(merge_add(in_place, c, 0.3F, in_place));
    REQUIRE(in_place == target);
  }
}

TEST_CASE("merge_add with scale 1 is a plain addition, bit by bit", "[merge]") {
  const std::uint64_t base = GENERATE(from_range(test::seeds({0})));
  CAPTURE(base);
  const auto w = random_values(4099, base + 3), c = random_values(4099, base + 4);
  std::vector<float> target(w.size());
  REQUIRE(merge_add(w, c, 1.0F, target));
  for (std::size_t i = 0; i < w.size(); ++i) REQUIRE(target[i] == w[i] + c[i]);
}

// 1 + 2^-12 squared needs 25 bits: a fused multiply-add would keep the last one.
TEST_CASE("merge_add rounds the product before the sum", "[merge]") {
  const float x = 1.0F + 0x1p-12F;
  const volatile float product = x * x;
  const std::vector<float> w(64, -product), c(64, x);
  std::vector<float> target(64, 5.0F);
  REQUIRE(merge_add(w, c, x, target));
  for (const float value : target) REQUIRE(value == 0.0F);
}

TEST_CASE("merge_add_large leaves small elements out", "[merge]") {
  const std::uint64_t base = GENERATE(from_range(test::seeds({0})));
  CAPTURE(base);
  for (const std::size_t n : kLengths) {
    const auto w = random_values(n, base + 5), c = random_values(n, base + 6);
    std::vector<float> target(n), all(n);
    REQUIRE(merge_add_large(w, c, 0.5F, 0.25F, target));
    REQUIRE(merge_add(w, c, 0.5F, all));
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(target[i] == (std::fabs(c[i]) < 0.25F ? w[i] : all[i]));
    }
  }
}

TEST_CASE("merge_accumulate and merge_scaled", "[merge]") {
  const std::uint64_t base = GENERATE(from_range(test::seeds({0})));
  CAPTURE(base);
  for (const std::size_t n : kLengths) {
    const auto a = random_values(n, base + 7), b = random_values(n, base + 8);
    std::vector<float> sum = a;
    REQUIRE(merge_accumulate(b, sum));
    for (std::size_t i = 0; i < n; ++i) REQUIRE(sum[i] == a[i] + b[i]);
    REQUIRE(merge_scaled(0.1F, sum, sum));
    for (std::size_t i = 0; i < n; ++i) {
      require_near(sum[i], double{0.1F} * double{a[i] + b[i]});
    }
  }
}

TEST_CASE("merge_add_two has the bits of its three steps", "[merge]") {
  const std::uint64_t base = GENERATE(from_range(test::seeds({0})));
  CAPTURE(base);
  for (const std::size_t n : kLengths) {
    const auto w = random_values(n, base + 9), a = random_values(n, base + 10);
    const auto b = random_values(n, base + 11);
    for (const auto& [first, second] : {std::pair{1.0F, 1.0F}, std::pair{0.3F, 0.7F}}) {
      std::vector<float> sum(n), steps(n), once(n);
      REQUIRE(merge_scaled(first, a, sum));
      REQUIRE(merge_add(sum, b, second, sum));
      REQUIRE(merge_add(w, sum, -0.5F, steps));
      REQUIRE(merge_add_two(w, {a, first}, {b, second}, -0.5F, once));
      REQUIRE(once == steps);
    }
    for_each_spoilt(a, [&](const std::vector<float>& spoilt) {
      std::vector<float> target(n);
      REQUIRE_FALSE(merge_add_two(w, {spoilt, 0.5F}, {b, 1.0F}, 0.5F, target));
      REQUIRE_FALSE(merge_add_two(w, {b, 1.0F}, {spoilt, 0.5F}, 0.5F, target));
    });
  }
}

TEST_CASE("merge_scaled_two has the bits of its three steps", "[merge]") {
  const std::uint64_t base = GENERATE(from_range(test::seeds({0})));
  CAPTURE(base);
  for (const std::size_t n : kLengths) {
    const auto a = random_values(n, base + 12), b = random_values(n, base + 13);
    for (const auto& [first, second] : {std::pair{1.0F, 1.0F}, std::pair{0.3F, 0.7F}}) {
      std::vector<float> steps(n), once(n);
      REQUIRE(merge_scaled(first, a, steps));
      REQUIRE(merge_add(steps, b, second, steps));
      REQUIRE(merge_scaled(1.0F / 3.0F, steps, steps));
      REQUIRE(merge_scaled_two({a, first}, {b, second}, 1.0F / 3.0F, once));
      REQUIRE(once == steps);
    }
    for_each_spoilt(a, [&](const std::vector<float>& spoilt) {
      std::vector<float> target(n);
      REQUIRE_FALSE(merge_scaled_two({spoilt, 0.5F}, {b, 1.0F}, 0.5F, target));
      REQUIRE_FALSE(merge_scaled_two({b, 1.0F}, {spoilt, 0.5F}, 0.0F, target));
    });
  }
}

TEST_CASE("what is not finite is found wherever it is", "[merge]") {
  for (const std::size_t n : {std::size_t{1}, std::size_t{16}, std::size_t{67}}) {
    for (std::size_t at = 0; at < n; ++at) {
      for (const float bad : kBad) {
        const std::vector<float> good(n, 1.0F);
        std::vector<float> c(n, 1.0F), target(n), sum(n, 1.0F), scaled(n, 1.0F);
        c[at] = scaled[at] = bad;
        REQUIRE_FALSE(all_finite(c));
        REQUIRE_FALSE(merge_add(good, c, 0.5F, target));
        REQUIRE_FALSE(merge_add(good, c, 0.0F, target));
        REQUIRE_FALSE(merge_add_large(good, c, 0.5F, 0.1F, target));
        REQUIRE_FALSE(merge_accumulate(c, sum));
        REQUIRE_FALSE(merge_scaled(0.5F, scaled, scaled));
      }
    }
    const std::vector<float> largest(n, std::numeric_limits<float>::max());
    std::vector<float> target(n);
    REQUIRE(all_finite(largest));
    REQUIRE_FALSE(merge_add(largest, largest, 1.0F, target));  // the sum overflows
    const std::vector<float> denormal(n, std::numeric_limits<float>::denorm_min());
    REQUIRE(merge_add(denormal, denormal, 1.0F, target));
  }
}

TEST_CASE("the elastic difference moves worker and centre towards each other", "[merge]") {
  const std::uint64_t base = GENERATE(from_range(test::seeds({0})));
  CAPTURE(base);
  for (const std::size_t n : kLengths) {
    const auto centre = random_values(n, base + 9), start = random_values(n, base + 10);
    std::vector<float> x = start, e(n), moved(n);
    elastic_difference(centre, 0.25F, x, e);
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = 0.25 * (double{start[i]} - double{centre[i]});
      require_near(e[i], expected);
      require_near(x[i], double{start[i]} - expected);
    }
    std::vector<float> same = centre;
    elastic_part(same, 0.25F, start, same);  // in place of the centre
    REQUIRE(same == e);
    std::vector<float> still = start;
    elastic_difference(centre, 0.0F, still, e);
    REQUIRE(still == start);
    REQUIRE(merge_add(centre, e, 1.0F, moved));
    REQUIRE(moved == centre);
  }
}

}  // namespace speedo
