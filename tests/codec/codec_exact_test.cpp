// Ranges that travel as they are, whatever the codec makes of the values around them.

#include <algorithm>
#include <cstring>

#include "codec/codec_support.hpp"

namespace speedo {
namespace {

using test::Values;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kExactCount = 2000;
const std::vector<ExactRange> kRanges = {{0, 1}, {500, 700}, {700, 701}, {1990, kExactCount}};

bool is_exact(std::size_t index) {
  return std::ranges::any_of(
      kRanges, [&](const ExactRange& range) { return index >= range.begin && index < range.end; });
}

Bytes exactly_encoded(const CodecSpec& spec, std::span<const float> values,
                      std::span<float> residual) {
  Bytes room(encoded_bytes_max(spec, values.size()) + exact_bytes(kRanges));
  const Result<std::size_t> bytes = encode(spec, values, residual, room, kRanges);
  REQUIRE(bytes);
  room.resize(*bytes);
  return room;
}

// What a receiver sees of values that are zeros in the ranges; of onebit without these.
std::vector<float> sent_around(const CodecSpec& spec, const std::vector<float>& values) {
  if (spec.kind != CodecKind::kOneBit) return test::sent(spec, values);
  constexpr std::size_t kBlock = 512;
  std::vector<float> all(values.size(), 0.0F);
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    std::vector<float> others;
    std::vector<std::size_t> places;
    for (std::size_t i = begin; i < std::min(begin + kBlock, values.size()); ++i) {
      if (is_exact(i)) continue;
      others.push_back(values[i]);
      places.push_back(i);
    }
    const std::vector<float> seen = test::sent(spec, others);
    for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = seen[i];
  }
  return all;
}

TEST_CASE("Exact ranges come back bit by bit, and others as without them or with zeros there") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  const std::string text = GENERATE(from_range(test::kCodecTexts));
  if (text == "none") return;
  CAPTURE(seed, text);
  const CodecSpec spec = test::codec_of(text);
  for (const Values kind : {Values::kGradient, Values::kTies, Values::kTiny, Values::kAnyBits}) {
    CAPTURE(static_cast<int>(kind));
    std::vector<float> values = test::draw_values(Values::kGradient, kExactCount, seed);
    const std::vector<float> drawn = test::draw_values(kind, kExactCount, seed + 1);
    for (std::size_t i = 0; i < kExactCount; ++i) {
      if (is_exact(i)) values[i] = drawn[i];
    }
    std::vector<float> input = values;
    std::vector<float> residual = test::draw_values(Values::kGradient, kExactCount, seed + 2);
    for (std::size_t i = 0; i < kExactCount; ++i) {
      input[i] += residual[i];
    }
    std::vector<float> others = input;
    for (std::size_t i = 0; i < kExactCount; ++i) {
      if (is_exact(i)) others[i] = 0.0F;
    }
    const std::vector<float> expected = sent_around(spec, others);
    const Bytes bytes = exactly_encoded(spec, values, residual);
    const CodecBytes bounds = encoded_bytes(spec.kind, kExactCount);
    CHECK((bytes.size() >= bounds.min && bytes.size() <= bounds.max));
    const std::vector<float> seen = test::decoded(spec, bytes, kExactCount);
    for (std::size_t i = 0; i < kExactCount; ++i) {
      if (is_exact(i) && seen[i] != input[i]) FAIL(i << ": " << seen[i]);
      // Sums of onebit are added in another order where values between them are left out.
      const float rounding = spec.kind == CodecKind::kOneBit ? 2e-5F : 0.0F;
      const bool is_near = std::abs(seen[i] - expected[i]) <= rounding * std::abs(expected[i]);
      if (!is_exact(i) && !is_near) FAIL(i << ": " << seen[i] << ", not " << expected[i]);
      if (residual[i] != input[i] - seen[i]) FAIL(i << ": " << residual[i] << " is left");
    }
  }
}

TEST_CASE("Exact ranges of zeros take no floats") {
  const CodecSpec spec = test::codec_of("onebit");
  std::vector<float> values(kExactCount, 1.0F), residual(kExactCount, 0.0F);
  for (std::size_t i = 0; i < kExactCount; ++i) values[i] = is_exact(i) ? 0.0F : 1.0F;
  const Bytes bytes = exactly_encoded(spec, values, residual);
  CHECK(bytes.size() == encoded_bytes_max(spec, kExactCount) + 8 * kRanges.size());
  const std::vector<float> seen = test::decoded(spec, bytes, kExactCount);
  for (std::size_t i = 0; i < kExactCount; ++i) {
    if (!(std::abs(seen[i] - values[i]) <= 1e-6F)) FAIL(i << ": " << seen[i]);
  }
}

TEST_CASE("What is not finite in an exact range is found before anything is written") {
  const float bad =
      GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
               std::numeric_limits<float>::max());
  const CodecSpec spec = test::codec_of("int8");
  std::vector<float> values(kExactCount, 1.0F), residual(kExactCount, 0.5F);
  values[600] = bad;
  residual[600] = std::numeric_limits<float>::max();
  const std::vector<float> before = residual;
  Bytes room(encoded_bytes_max(spec, kExactCount) + exact_bytes(kRanges));
  const auto bytes = encode(spec, values, residual, room, kRanges);
  REQUIRE_FALSE(bytes);
  CHECK(bytes.error().code == ErrorCode::kNotFinite);
  CHECK(residual == before);
}

// Behind two zeros of int8, whose scale is 0.
TEST_CASE("Exact ranges that no encoder writes are damaged") {
  const auto bytes_of = [](std::initializer_list<std::uint32_t> numbers) {
    Bytes bytes(6);
    for (const std::uint32_t number : numbers) {
      bytes.resize(bytes.size() + 4);
      std::memcpy(&bytes[bytes.size() - 4], &number, sizeof number);
    }
    return bytes;
  };
  const auto is_read = [](const Bytes& bytes, const std::string& text = "int8") {
    std::vector<float> values(2);
    const auto read = decode(test::codec_of(text), bytes, values);
    if (!read) CHECK(read.error().code == ErrorCode::kCorrupt);
    return read.has_value();
  };
  const auto one = std::bit_cast<std::uint32_t>(1.0F);
  CHECK(is_read(bytes_of({0, 2, one, one})));
  CHECK(is_read(bytes_of({0, 1, one, 1, 1, one})));
  CHECK_FALSE(is_read(bytes_of({1, 1, one, 0, 1, one})));  // not in order
  CHECK_FALSE(is_read(bytes_of({0, 1, one, 0, 1, one})));  // one twice
  constexpr std::uint32_t kZeros = std::uint32_t{1} << 31U;
  CHECK(is_read(bytes_of({0, 1, one, 1, kZeros + 1})));
  CHECK(is_read(bytes_of({0, kZeros + 2})));
  CHECK_FALSE(is_read(bytes_of({0, kZeros})));
  CHECK_FALSE(is_read(bytes_of({1, kZeros + 2})));
  CHECK_FALSE(is_read(bytes_of({0, kZeros + 1, one})));
  CHECK(is_read(bytes_of({0, 1, 0})));  // as writers did that had no other form
  CHECK_FALSE(is_read(bytes_of({0, 0})));
  CHECK_FALSE(is_read(bytes_of({0, 1})));
  CHECK_FALSE(is_read(bytes_of({0})));
  CHECK_FALSE(is_read(bytes_of({0, 1, one, one})));
  CHECK_FALSE(is_read(bytes_of({1, 2, one, one})));
  CHECK_FALSE(is_read(bytes_of({3, 1, one})));
  CHECK_FALSE(is_read(bytes_of({0xffffffff, 1, one})));
  CHECK_FALSE(is_read(bytes_of({1, 0xffffffff, one})));
  CHECK_FALSE(is_read(bytes_of({0, 1, 0x7f800000})));
  CHECK_FALSE(is_read(bytes_of({0, 1, 0xffc00000})));
  Bytes cut = bytes_of({0, 2, one, one});
  cut.pop_back();
  CHECK_FALSE(is_read(cut));
  Bytes floats(20);
  std::memcpy(&floats[12], "\1", 1);
  CHECK_FALSE(is_read(floats, "none"));
}

}  // namespace
}  // namespace speedo
