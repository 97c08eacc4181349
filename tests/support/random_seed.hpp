#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <system_error>
#include <vector>

// Seeds of tests that draw at random: those kept as cases, as they found a defect or came first,
// and one that is drawn anew in every run. A test that is cheap runs with all, seeds(); of a
// program whose values are drawn with varied(), ctest runs the kept ones as tests of their own.

namespace speedo::test {

// The seed of this run: SPEEDO_TEST_SEED of the environment, a whole number below 2^64, else a
// drawn one below 2^32. It is printed when it is first asked for, so before what it leads to can
// end the program. The same in all tests of a program. Thread-safe.
inline std::uint64_t fresh_seed() {
  static const std::uint64_t kSeed = [] {
    std::uint64_t seed = std::random_device{}();
    if (const char* wanted = std::getenv("SPEEDO_TEST_SEED"); wanted != nullptr) {
      const char* end = wanted + std::strlen(wanted);
      const auto [rest, error] = std::from_chars(wanted, end, seed);
      if (error != std::errc() || rest != end) {
        std::fprintf(stderr, "SPEEDO_TEST_SEED is '%s', not a whole number below 2^64\n", wanted);
        std::exit(EXIT_FAILURE);
      }
    }
    std::fprintf(stderr, "fresh seed: SPEEDO_TEST_SEED=%ju repeats this run\n",
                 static_cast<std::uintmax_t>(seed));
    std::fflush(stderr);
    return seed;
  }();
  return kSeed;
}

// The kept seeds, and then the fresh one; for GENERATE(from_range(seeds({...}))) with a CAPTURE.
inline std::vector<std::uint64_t> seeds(std::vector<std::uint64_t> kept) {
  kept.push_back(fresh_seed());
  return kept;
}

// What one of a program's several generators is seeded with: `seed`, moved by this run's. So
// SPEEDO_TEST_SEED=0 gives each the seed that it names.
inline std::uint64_t varied(std::uint64_t seed) { return seed + fresh_seed(); }

// A tolerance for values that were drawn so. It is as tight as seed 0 allows; rounding of other
// draws reaches further, that of a wrong kernel by orders of magnitude.
inline double tolerated(double tolerance) {
  constexpr double kRoomOfOtherDraws = 4.0;
  return fresh_seed() == 0 ? tolerance : kRoomOfOtherDraws * tolerance;
}

}  // namespace speedo::test
