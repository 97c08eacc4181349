#include <speedo/base/random.hpp>

#include <bit>
#include <cmath>

#include <speedo/base/assert.hpp>

namespace speedo {

Random::Random(std::uint64_t seed) {
  for (std::uint64_t& word : state_) {
    word = mix64(seed);
    seed += 0x9e3779b97f4a7c15U;
  }
}

Random Random::derive(std::uint64_t seed, std::span<const std::uint64_t> path) {
  std::uint64_t mixed = seed;
  for (const std::uint64_t step : path) mixed = mix64(mixed ^ mix64(step));
  return Random(mixed);
}

Random Random::derive(std::uint64_t seed, std::initializer_list<std::uint64_t> path) {
  return derive(seed, std::span(path.begin(), path.size()));
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t bound) {
  SPEEDO_ASSERT(bound > 0);
  // Values under 2^64 mod bound are drawn again, so that each residue is equally likely.
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t value = next();
    if (value >= threshold) return value % bound;
  }
}

float Random::uniform() { return static_cast<float>(next() >> 40U) * 0x1p-24F; }

float Random::uniform(float low, float high) { return low + (high - low) * uniform(); }

float Random::gaussian(float mean, float deviation) {
  if (has_spare_) {
    has_spare_ = false;
    return mean + deviation * spare_;
  }
  for (;;) {
    const double u = static_cast<double>(next() >> 11U) * 0x1p-52 - 1.0;
    const double v = static_cast<double>(next() >> 11U) * 0x1p-52 - 1.0;
    const double s = u * u + v * v;
    if (s >= 1.0 || s == 0.0) continue;
    const double factor = std::sqrt(-2.0 * std::log(s) / s);
    spare_ = static_cast<float>(v * factor);
    has_spare_ = true;
    return mean + deviation * static_cast<float>(u * factor);
  }
}

}  // namespace speedo
