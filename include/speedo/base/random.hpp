#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace speedo {

// xoshiro256** (Blackman, Vigna 2018), seeded by SplitMix64, with our own distributions: standard
// ones differ between library versions, and a seed must mean the same weights everywhere.
// Thread safety: one thread at a time.
class Random {
 public:
  explicit Random(std::uint64_t seed);

  // A generator whose stream depends on the seed and on each of `path`: for instance
  // Random::derive(seed, {layer, iteration}). Streams of different paths are independent.
  static Random derive(std::uint64_t seed, std::span<const std::uint64_t> path);
  static Random derive(std::uint64_t seed, std::initializer_list<std::uint64_t> path);

  std::uint64_t next();                          // 64 uniform bits
  std::uint64_t below(std::uint64_t bound);      // uniform in [0, bound), unbiased; bound > 0
  float uniform();                               // uniform in [0, 1), 24 bits
  float uniform(float low, float high);          // uniform in [low, high)
  float gaussian(float mean, float deviation);   // polar method, deterministic order of draws

  // The whole state, to save and restore a run exactly.
  std::array<std::uint64_t, 4> state() const { return state_; }

 private:
  std::array<std::uint64_t, 4> state_{};
  float spare_ = 0.0F;
  bool has_spare_ = false;
};

// SplitMix64's finalizer: a cheap, good 64-bit mix, used for counter-based masks.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace speedo
