// The two floats of 16 bits against their definitions: each of the 65,536, and the rounding to the
// nearest of them.

#include <algorithm>
#include <cstring>

#include "codec/codec_support.hpp"

namespace speedo {
namespace {

// What a half float says, by its definition, in double.
struct HalfFormat {
  const char* codec;
  int exponent_bits, mantissa_bits;
};
const HalfFormat kHalfFormats[] = {{"bf16", 8, 7}, {"fp16", 5, 10}};

double half_value(const HalfFormat& format, unsigned half) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(half >> format.mantissa_bits) % (1 << format.exponent_bits);
  const int mantissa = static_cast<int>(half) % (1 << format.mantissa_bits);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
  const double magnitude =
      std::ldexp(whole, std::max(exponent, 1) - bias - format.mantissa_bits);
  return half >> 15 != 0 ? -magnitude : magnitude;
}

bool is_finite_half(const HalfFormat& format, unsigned half) {
  const unsigned infinity = ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
  return (half & 0x7fffU) < infinity;
}

std::vector<std::byte> half_bytes_of(const std::vector<std::uint16_t>& halves) {
  std::vector<std::byte> bytes(2 * halves.size());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    bytes[2 * i] = static_cast<std::byte>(halves[i] % 256);
    bytes[2 * i + 1] = static_cast<std::byte>(halves[i] / 256);
  }
  return bytes;
}

TEST_CASE("Each finite half float is decoded to its value and encoded to itself") {
  for (const HalfFormat& format : kHalfFormats) {
    CAPTURE(format.codec);
    const CodecSpec spec = test::codec_of(format.codec);
    std::vector<std::uint16_t> halves;
    for (unsigned half = 0; half < 65536; ++half) {
      if (is_finite_half(format, half)) halves.push_back(static_cast<std::uint16_t>(half));
    }
    const std::vector<std::byte> bytes = half_bytes_of(halves);
    const std::vector<float> values = test::decoded(spec, bytes, halves.size());
    for (std::size_t i = 0; i < halves.size(); ++i) {
      const double expected = half_value(format, halves[i]);
      if (double{values[i]} != expected || std::signbit(values[i]) != std::signbit(expected)) {
        FAIL("half " << halves[i] << ": " << values[i] << ", not " << expected);
      }
    }
    CHECK(test::encoded(spec, values) == bytes);
  }
}

TEST_CASE("A half float that is not finite is damage") {
  for (const HalfFormat& format : kHalfFormats) {
    const CodecSpec spec = test::codec_of(format.codec);
    for (unsigned half = 0; half < 65536; ++half) {
      std::vector<float> value(1);
      const std::vector<std::byte> bytes = half_bytes_of({static_cast<std::uint16_t>(half)});
      const Result<void> read = decode(spec, bytes, value);
      if (read.has_value() != is_finite_half(format, half)) FAIL(format.codec << " " << half);
    }
  }
}

// The nearest of the finite half floats; of two as near the one with an even last bit.
unsigned nearest_half(const HalfFormat& format, float value) {
  const double magnitude = std::fabs(double{value});
  // The positive ones are in the order of their bits.
  unsigned low = 0, high = 0x7fff;
  while (!is_finite_half(format, high)) --high;
  while (low < high) {
    const unsigned middle = (low + high + 1) / 2;
    if (half_value(format, middle) <= magnitude) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  unsigned nearest = low;
  if (is_finite_half(format, low + 1)) {
    const double below = magnitude - half_value(format, low);
    const double above = half_value(format, low + 1) - magnitude;
    if (above < below || (above == below && low % 2 == 1)) nearest = low + 1;
  }
  return nearest | (std::signbit(value) ? 0x8000U : 0U);
}

// Between, beside and upon neighbours, where rounding is decided.
std::vector<float> decisive_values(const HalfFormat& format, std::uint64_t seed) {
  constexpr float kMost = std::numeric_limits<float>::max();
  std::vector<float> values = {0.0F, -0.0F, kMost, -kMost, 65504.0F, 65519.9F, 65520.0F, 65536.0F,
                               std::numeric_limits<float>::denorm_min(), 0x1.fep127F,
                               0x1.ff0002p127F, 0x1.fefffep127F};
  Random random(seed);
  for (int i = 0; i < 20000; ++i) {
    const auto half = static_cast<unsigned>(random.below(0x7fff));
    if (!is_finite_half(format, half + 1)) continue;
    const auto middle =
        static_cast<float>((half_value(format, half) + half_value(format, half + 1)) / 2);
    for (const float value :
         {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, kMost)}) {
      values.push_back(random.below(2) == 0 ? value : -value);
    }
    values.push_back(test::any_finite(random));
    values.push_back(random.gaussian(0.0F, 1.0F));
  }
  return values;
}

TEST_CASE("A value becomes the nearest half float, ties to even, and none becomes infinite") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  CAPTURE(seed);
  for (const HalfFormat& format : kHalfFormats) {
    const CodecSpec spec = test::codec_of(format.codec);
    const std::vector<float> values = decisive_values(format, seed);
    std::vector<std::uint16_t> expected;
    for (const float value : values) {
      expected.push_back(static_cast<std::uint16_t>(nearest_half(format, value)));
    }
    const std::vector<std::byte> bytes = test::encoded(spec, values);
    std::vector<std::uint16_t> found(values.size());
    std::memcpy(found.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (found[i] != expected[i]) {
        FAIL(format.codec << " makes " << found[i] << " of " << values[i] << ", not "
                          << expected[i]);
      }
    }
  }
}

}  // namespace
}  // namespace speedo
