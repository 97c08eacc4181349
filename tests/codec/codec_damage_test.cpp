// Bytes that encode() did not write: an error or finite values, and nothing outside is touched.
// Under the address sanitizer all buffers end where what they hold ends.

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "codec/codec_support.hpp"

namespace speedo {
namespace {

using Bytes = std::vector<std::byte>;
using test::Values;

constexpr float kUntouched = 12345.0F;

// Whether `bytes` are decoded; what comes of them is looked at.
bool survives(const CodecSpec& spec, const Bytes& bytes, std::size_t count) {
  const Bytes exact(bytes.begin(), bytes.end());
  std::vector<float> room(count + 32, kUntouched);
  const std::span<float> target = std::span(room).subspan(16, count);
  const Result<void> within = decode(spec, exact, target);
  for (std::size_t i = 0; i < 16; ++i) {
    if (room[i] != kUntouched || room[16 + count + i] != kUntouched) FAIL("wrote outside");
  }
  std::vector<float> tight(count);
  const Result<void> read = decode(spec, exact, tight);
  if (read.has_value() != within.has_value()) FAIL("two answers to the same bytes");
  if (read) {
    const bool finite = std::ranges::all_of(tight, [](float x) { return std::isfinite(x); });
    if (!finite) FAIL("decoded what is not finite");
    return true;
  }
  if (read.error().code != ErrorCode::kCorrupt) FAIL(read.error().message);
  return false;
}

TEST_CASE("Truncated or longer bytes are damaged") {
  const std::string text = GENERATE(from_range(test::kCodecTexts));
  CAPTURE(text);
  const CodecSpec spec = test::codec_of(text);
  for (const std::size_t count : {0, 1, 8, 9, 65, 300, 700}) {
    for (const Values kind : {Values::kUniform, Values::kZeros, Values::kHuge}) {
      const Bytes whole = test::encoded(spec, test::draw_values(kind, count, 1));
      REQUIRE(survives(spec, whole, count));
      for (std::size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(count, size);
        REQUIRE_FALSE(
            survives(spec, {whole.begin(), whole.begin() + static_cast<int>(size)}, count));
      }
      Bytes longer = whole;
      longer.push_back(std::byte{0});
      REQUIRE_FALSE(survives(spec, longer, count));
    }
  }
}

TEST_CASE("Bytes with any bit turned are an error or finite values") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  const std::string text = GENERATE(from_range(test::kCodecTexts));
  CAPTURE(seed, text);
  const CodecSpec spec = test::codec_of(text);
  Random random(seed);
  for (const std::size_t count : {1, 9, 65, 300, 1100}) {
    Bytes bytes = test::encoded(spec, test::draw_values(Values::kAnyBits, count, seed));
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      const auto mask = static_cast<std::byte>(1U << (bit % 8));
      bytes[bit / 8] ^= mask;
      survives(spec, bytes, count);
      bytes[bit / 8] ^= mask;
    }
    for (int round = 0; round < 300; ++round) {
      Bytes damaged = bytes;
      for (std::uint64_t left = 1 + random.below(8); left > 0 && !damaged.empty(); --left) {
        damaged[random.below(damaged.size())] = static_cast<std::byte>(random.next());
      }
      survives(spec, damaged, count);
      // Cut or read as another number of values.
      damaged.resize(random.below(damaged.size() + 1));
      survives(spec, damaged, count);
      survives(spec, bytes, random.below(2 * count + 2));
    }
  }
}

TEST_CASE("Random bytes are an error or finite values") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  const std::string text = GENERATE(from_range(test::kCodecTexts));
  CAPTURE(seed, text);
  const CodecSpec spec = test::codec_of(text);
  Random random(seed);
  for (int round = 0; round < 5000; ++round) {
    const std::size_t count = random.below(600);
    Bytes bytes(random.below(2) == 0 ? random.below(encoded_bytes_max(spec, count) + 9)
                                     : encoded_bytes_max(spec, count));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    // Otherwise nearly all would fail at their head.
    if (bytes.size() >= 8 && random.below(4) > 0) {
      const auto entries = static_cast<std::uint32_t>(random.below(count + 2));
      const auto form = static_cast<std::uint32_t>(1 + random.below(2));
      std::memcpy(bytes.data(), &entries, sizeof entries);
      std::memcpy(bytes.data() + 4, &form, sizeof form);
    }
    survives(spec, bytes, count);
  }
}

// The bytes of numbers: u32 and float of 4, others of one.
struct Piece {
  std::uint32_t bits;
  std::size_t size;
};
Piece u32(std::uint32_t value) { return {value, 4}; }
Piece f32(float value) { return {std::bit_cast<std::uint32_t>(value), 4}; }
Piece u8(unsigned value) { return {value, 1}; }

Bytes bytes_of(std::initializer_list<Piece> pieces) {
  Bytes bytes;
  for (const Piece& piece : pieces) {
    for (std::size_t i = 0; i < piece.size; ++i) {
      bytes.push_back(static_cast<std::byte>(piece.bits >> (8 * i)));
    }
  }
  return bytes;
}

// The formats, written down byte by byte: what has been stored must stay readable.
TEST_CASE("The formats are those of src/codec/README.md") {
  const auto check = [](const char* text, const std::vector<float>& values, const Bytes& bytes) {
    const CodecSpec spec = test::codec_of(text);
    CAPTURE(text);
    CHECK(test::encoded(spec, values) == bytes);
    CHECK(survives(spec, bytes, values.size()));
  };
  check("none", {1.0F, -2.0F}, bytes_of({u32(0x3f800000), u32(0xc0000000)}));
  check("bf16", {1.0F, -2.0F}, bytes_of({u8(0x80), u8(0x3f), u8(0x00), u8(0xc0)}));
  check("fp16", {1.0F, -2.0F}, bytes_of({u8(0x00), u8(0x3c), u8(0x00), u8(0xc0)}));
  check("int8", {127.0F, -3.0F, 0.4F}, bytes_of({f32(1.0F), u8(127), u8(0xfd), u8(0)}));
  check("int8", {1e-37F}, bytes_of({f32(0.0F), u8(0)}));
  check("onebit", {-0.0F, -2.0F}, bytes_of({f32(-2.0F), f32(0.0F), u8(0b10)}));
  check("onebit", {1.0F, -2.0F, 3.0F, -6.0F, 2.0F},
        bytes_of({f32(-4.0F), f32(2.0F), u8(0b01010)}));
  std::vector<float> few(1000, 0.1F);
  few[2] = 5.0F;
  few[303] = -7.0F;  // 300 lie between: 300 = 0x2c + 2 * 128
  check("threshold:0.5", few,
        bytes_of({u32(2), u32(1), f32(0.5F), u8(0b10), u8(2), u8(0xac), u8(0x02)}));
  check("topk:0.2", few,
        bytes_of({u32(2), u32(1), f32(5.0F), f32(-7.0F), u8(2), u8(0xac), u8(0x02)}));
  check("threshold:0.5", {-1.0F, 0.0F, 1.0F, -1.0F},
        bytes_of({u32(3), u32(2), f32(0.5F), u8(0b101), u8(0b1101)}));
  // The largest fifth, of which one is not 0: of the first block, and of none in the second.
  std::vector<float> first(513, 0.0F);
  first[1] = -3.0F;
  check("threshold", first,
        bytes_of({u32(1), u32(3), f32(3.0F), f32(1.0F), u8(1), u8(1)}));
  check("topk:50", {-1.0F, 0.0F, 1.0F, -3.0F},
        bytes_of({u32(2), u32(2), f32(-1.0F), f32(-3.0F), u8(0b1001)}));
  check("topk:100", {0.0F, 1.0F}, bytes_of({u32(1), u32(2), f32(1.0F), u8(0b10)}));
}

TEST_CASE("What no encoder writes is damaged") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto refused = [](const char* text, std::size_t count,
                          std::initializer_list<Piece> pieces) {
    return !survives(test::codec_of(text), bytes_of(pieces), count);
  };
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    CHECK(refused("none", 2, {f32(1.0F), f32(bad)}));
    CHECK(refused("int8", 1, {f32(bad), u8(1)}));
    CHECK(refused("onebit", 2, {f32(bad), f32(1.0F), u8(1)}));
    CHECK(refused("onebit", 2, {f32(-1.0F), f32(bad), u8(1)}));
    CHECK(refused("threshold", 8, {u32(1), u32(2), f32(bad), u8(1), u8(1)}));
    CHECK(refused("topk", 8, {u32(1), u32(2), f32(bad), u8(1)}));
  }
  CHECK(refused("int8", 1, {f32(-1.0F), u8(1)}));
  CHECK(refused("int8", 1, {f32(3e36F), u8(1)}));  // 127 times it is infinite
  CHECK(refused("int8", 1, {f32(1.0F), u8(0x80)}));
  CHECK(refused("onebit", 2, {f32(1.0F), f32(1.0F), u8(1)}));
  CHECK(refused("onebit", 2, {f32(-1.0F), f32(-1.0F), u8(1)}));
  CHECK(refused("onebit", 2, {f32(-1.0F), f32(1.0F), u8(0b101)}));  // a bit of a third value
  CHECK(refused("threshold", 8, {u32(1), u32(2), f32(0.0F), u8(1), u8(1)}));
  CHECK(refused("threshold", 8, {u32(1), u32(2), f32(-1.0F), u8(1), u8(1)}));
  CHECK(refused("threshold", 8, {u32(1), u32(2), f32(1.0F), u8(0b11), u8(1)}));  // two signs
  // By blocks, of which the second has no entry.
  CHECK_FALSE(refused("threshold", 513, {u32(1), u32(3), f32(2.0F), f32(1.0F), u8(1), u8(0)}));
  CHECK(refused("threshold", 513, {u32(1), u32(3), f32(2.0F), f32(3.0F), u8(1), u8(0)}));
  CHECK(refused("threshold", 513, {u32(1), u32(3), f32(0.0F), f32(1.0F), u8(1), u8(0)}));
  CHECK(refused("threshold", 513, {u32(1), u32(3), f32(2.0F), u8(1), u8(0)}));
  CHECK(refused("threshold", 8, {u32(1), u32(5), f32(2.0F), u8(1), u8(1)}));
  CHECK(refused("topk", 8, {u32(1), u32(3), f32(2.0F), u8(0)}));
}

TEST_CASE("Indices that no encoder writes are damaged") {
  const auto refused = [](std::size_t count, std::initializer_list<Piece> pieces) {
    return !survives(test::codec_of("topk:100"), bytes_of(pieces), count);
  };
  const Piece one = f32(1.0F);
  CHECK_FALSE(refused(8, {u32(2), u32(1), one, one, u8(0), u8(6)}));
  CHECK(refused(8, {u32(2), u32(1), one, one, u8(0), u8(7)}));  // beyond the last value
  CHECK(refused(8, {u32(1), u32(1), one, u8(8)}));
  CHECK(refused(8, {u32(2), u32(1), one, one, u8(7), u8(0)}));
  CHECK(refused(8, {u32(2), u32(1), one, one, u8(0)}));             // one index for two
  CHECK(refused(8, {u32(1), u32(1), one, u8(0), u8(0)}));           // two for one
  CHECK(refused(8, {u32(1), u32(1), one, u8(0x80)}));               // a number that does not end
  CHECK(refused(8, {u32(1), u32(1), one, u8(0x81), u8(0x00)}));     // longer than needed
  CHECK(refused(8, {u32(9), u32(1), one, u8(0)}));                  // more than there are
  CHECK(refused(8, {u32(0xffffffff), u32(1), one, u8(0)}));
  CHECK(refused(8, {u32(1), u32(0), one, u8(1)}));                  // no such form
  CHECK(refused(8, {u32(1), u32(3), one, u8(1)}));
  CHECK(refused(8, {u32(1), u32(0x10001), one, u8(1)}));
  CHECK_FALSE(refused(8, {u32(2), u32(2), one, one, u8(0b10000001)}));
  CHECK(refused(8, {u32(2), u32(2), one, one, u8(0b10000101)}));    // three bits
  CHECK(refused(8, {u32(2), u32(2), one, one, u8(0b00000001)}));
  CHECK(refused(7, {u32(2), u32(2), one, one, u8(0b10000001)}));    // a bit of an eighth value
  CHECK(refused(8, {u32(1), u32(2), one, u8(1), u8(0)}));
  Bytes endless = bytes_of({u32(1), u32(1), one});
  endless.resize(endless.size() + 64, std::byte{0x80});
  endless.push_back(std::byte{1});
  CHECK_FALSE(survives(test::codec_of("topk:100"), endless, 8));
}

TEST_CASE("Damage is named with what was expected") {
  std::vector<float> target(10);
  const Result<void> read = decode(test::codec_of("int8"), Bytes(7), target);
  REQUIRE_FALSE(read);
  CHECK(read.error().message ==
        "7 bytes are not what codec 'int8' makes of 10 floats: they were damaged, or are of "
        "another codec");
}

}  // namespace
}  // namespace speedo
