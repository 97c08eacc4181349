#include <speedo/base/random.hpp>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "support/catch.hpp"

namespace speedo {
namespace {

TEST_CASE("The generator is xoshiro256**") {
  // The recurrence as published, written out a second time.
  std::array<std::uint64_t, 4> state = Random(5).state();
  Random random(5);
  const auto rotl = [](std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t expected = rotl(state[1] * 5, 7) * 9;
    const std::uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotl(state[3], 45);
    REQUIRE(random.next() == expected);
  }
}

TEST_CASE("A seed gives one stream, another seed another") {
  Random a(1), b(1), c(2);
  REQUIRE(a.next() == b.next());
  REQUIRE(a.next() != c.next());
}

TEST_CASE("Streams derived by different paths differ, by equal paths agree") {
  std::set<std::uint64_t> first;
  for (std::uint64_t layer = 0; layer < 30; ++layer) {
    for (std::uint64_t pass = 0; pass < 30; ++pass) {
      first.insert(Random::derive(7, {layer, pass}).next());
    }
  }
  REQUIRE(first.size() == 900);
  REQUIRE(Random::derive(7, {3, 4}).next() == Random::derive(7, {3, 4}).next());
}

TEST_CASE("Uniform and gaussian draws have the moments they should") {
  Random random(11);
  const int count = 200000;
  double sum = 0, square = 0;
  for (int i = 0; i < count; ++i) {
    const float value = random.uniform(-2.0F, 4.0F);
    REQUIRE(value >= -2.0F);
    REQUIRE(value < 4.0F);
    sum += value;
    square += static_cast<double>(value) * value;
  }
  REQUIRE(std::abs(sum / count - 1.0) < 0.02);
  REQUIRE(std::abs(square / count - 1.0 - 3.0) < 0.05);

  sum = square = 0;
  for (int i = 0; i < count; ++i) {
    const float value = random.gaussian(3.0F, 0.5F);
    sum += value;
    square += static_cast<double>(value) * value;
  }
  const double mean = sum / count;
  REQUIRE(std::abs(mean - 3.0) < 0.01);
  REQUIRE(std::abs(std::sqrt(square / count - mean * mean) - 0.5) < 0.01);
}

TEST_CASE("below() reaches every residue and nothing else") {
  Random random(3);
  std::vector<int> seen(7, 0);
  for (int i = 0; i < 7000; ++i) ++seen[random.below(7)];
  for (const int count : seen) REQUIRE(std::abs(count - 1000) < 200);
}

}  // namespace
}  // namespace speedo
