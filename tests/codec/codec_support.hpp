#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/codec/codec.hpp>

#include "support/catch.hpp"
#include "support/random_seed.hpp"

namespace speedo::test {

// One of each kind, and parameters at both ends.
inline const std::vector<std::string> kCodecTexts = {
    "none", "bf16", "fp16", "int8", "onebit", "threshold", "threshold:0.5",
    "threshold:1e4", "threshold:0.001", "topk:0.01", "topk:1", "topk:25", "topk:100"};

// Around the widths of vectors, words, blocks and tiles.
inline const std::vector<std::size_t> kCodecCounts = {
    0,   1,   2,   7,    8,    9,    15,   16,   17,   31,   33,   63,    64,   65,
    127, 255, 256, 257,  300,  511,  512,  513,  1023, 1024, 1025, 2047,  2049, 4099,
    9999, kCodecElementsMax - 1, kCodecElementsMax};

inline CodecSpec codec_of(const std::string& text) {
  Result<CodecSpec> spec = parse_codec(text);
  if (!spec) INFO(spec.error().message);
  REQUIRE(spec);
  return *spec;
}

enum class Values { kUniform, kGradient, kAnyBits, kTies, kZeros, kTiny, kHuge };
inline const std::vector<Values> kAllValues = {Values::kUniform, Values::kGradient,
                                               Values::kAnyBits, Values::kTies,
                                               Values::kZeros,   Values::kTiny,
                                               Values::kHuge};

// Any finite float: all exponents alike.
inline float any_finite(Random& random) {
  for (;;) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    if (std::isfinite(value)) return value;
  }
}

inline float draw(Values kind, Random& random) {
  constexpr float kMost = std::numeric_limits<float>::max();
  switch (kind) {
    case Values::kUniform: return random.uniform(-1.0F, 1.0F);
    case Values::kGradient: {
      const float wide = random.gaussian(0.0F, 1.0F);
      return 0.01F * wide * wide * wide;
    }
    case Values::kAnyBits: return any_finite(random);
    case Values::kTies: return static_cast<float>(random.below(5)) - 2.0F;
    case Values::kZeros: return random.below(2) == 0 ? 0.0F : -0.0F;
    case Values::kTiny: return 1e-38F * random.uniform(-1.0F, 1.0F);
    case Values::kHuge: return random.below(2) == 0 ? kMost : -kMost * random.uniform();
  }
  return 0.0F;
}

inline std::vector<float> draw_values(Values kind, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = draw(kind, random);
  return values;
}

// The bytes that encode() wrote, in memory of exactly their size.
inline std::vector<std::byte> encoded(const CodecSpec& spec, std::span<const float> values,
                                      std::span<float> residual = {}) {
  std::vector<std::byte> room(encoded_bytes_max(spec, values.size()));
  const Result<std::size_t> bytes = encode(spec, values, residual, room);
  REQUIRE(bytes);
  REQUIRE(*bytes <= room.size());
  return {room.begin(), room.begin() + static_cast<std::ptrdiff_t>(*bytes)};
}

inline std::vector<float> decoded(const CodecSpec& spec, std::span<const std::byte> bytes,
                                  std::size_t count) {
  std::vector<float> values(count, std::numeric_limits<float>::quiet_NaN());
  const Result<void> read = decode(spec, bytes, values);
  if (!read) INFO(read.error().message);
  REQUIRE(read);
  return values;
}

// What a receiver sees of `values`.
inline std::vector<float> sent(const CodecSpec& spec, std::span<const float> values) {
  return decoded(spec, encoded(spec, values), values.size());
}

}  // namespace speedo::test
