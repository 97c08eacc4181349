// What comes back, against each codec's rule, on all lengths and on values of all sizes.

#include <algorithm>
#include <numeric>

#include "codec/codec_support.hpp"

namespace speedo {
namespace {

using test::Values;

// A block of 256 of int8, 512 of onebit.
template <class Look>
void for_each_block(std::size_t count, std::size_t block, const Look& look) {
  for (std::size_t start = 0; start < count; start += block) {
    look(start, std::min(block, count - start));
  }
}

void require_half_float(std::span<const float> values, std::span<const float> back,
                        double relative, double absolute, double most) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = std::clamp(double{values[i]}, -most, most);
    const double bound = std::max(relative * std::fabs(value), absolute);
    if (!(std::fabs(value - double{back[i]}) <= bound)) FAIL(values[i] << " became " << back[i]);
  }
}

void require_int8(std::span<const float> values, std::span<const float> back) {
  for_each_block(values.size(), 256, [&](std::size_t start, std::size_t size) {
    double most = 0.0;
    for (std::size_t i = start; i < start + size; ++i) {
      most = std::max(most, std::fabs(double{values[i]}));
    }
    // Half a step, and roundings.
    const double bound = std::max(most / 127.0 * (0.5 + 1e-4), 1.5e-36);
    for (std::size_t i = start; i < start + size; ++i) {
      const double error = std::fabs(double{values[i]} - double{back[i]});
      if (!(error <= bound)) FAIL(values[i] << " became " << back[i] << ", bound " << bound);
    }
  });
}

void require_threshold(std::span<const float> values, std::span<const float> back, float t) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float expected = std::fabs(values[i]) < t ? 0.0F : std::copysign(t, values[i]);
    if (back[i] != expected) FAIL(values[i] << " became " << back[i]);
  }
}

// The largest magnitudes as they are, else 0.
std::vector<float> largest(std::span<const float> values, double percent) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::fabs(values[a]) > std::fabs(values[b]);
  });
  const auto wanted = static_cast<double>(values.size()) * percent / 100.0;
  const auto count = static_cast<std::size_t>(std::max(1.0, std::round(wanted)));
  std::vector<float> expected(values.size(), 0.0F);
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) {
    expected[order[i]] = values[order[i]];
  }
  return expected;
}

void require_topk(std::span<const float> values, std::span<const float> back, double percent) {
  const std::vector<float> expected = largest(values, percent);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (back[i] != expected[i]) FAIL(i << ": " << values[i] << " became " << back[i]);
  }
}

void require_largest_fifth(std::span<const float> values, std::span<const float> back) {
  const std::vector<float> expected = largest(values, 20.0);
  for_each_block(values.size(), 512, [&](std::size_t start, std::size_t size) {
    double sum = 0.0, count = 0.0;
    for (std::size_t i = start; i < start + size; ++i) {
      sum += std::fabs(double{expected[i]});
      count += expected[i] != 0.0F ? 1.0 : 0.0;
    }
    for (std::size_t i = start; i < start + size; ++i) {
      const double mean = expected[i] == 0.0F ? 0.0 : std::copysign(sum / count, expected[i]);
      const bool is_near = std::fabs(double{back[i]} - mean) <= 1e-6 * std::fabs(mean) + 1e-44;
      if (!is_near) FAIL(i << ": " << values[i] << " became " << back[i] << ", not " << mean);
    }
  });
}

void require_onebit(std::span<const float> values, std::span<const float> back) {
  for_each_block(values.size(), 512, [&](std::size_t start, std::size_t size) {
    double sums[2] = {0.0, 0.0};
    int counts[2] = {0, 0};
    for (std::size_t i = start; i < start + size; ++i) {
      sums[values[i] < 0.0F] += double{values[i]};
      ++counts[values[i] < 0.0F];
    }
    for (std::size_t i = start; i < start + size; ++i) {
      const bool negative = values[i] < 0.0F;
      const double mean = sums[negative] / counts[negative];
      // A float's rounding for each value, and what division by 512 costs the tiniest.
      const double bound = 2e-5 * std::fabs(mean) + 1e-39;
      if (!(std::fabs(mean - double{back[i]}) <= bound)) FAIL(mean << " became " << back[i]);
    }
  });
}

void require_rule(const CodecSpec& spec, std::span<const float> values,
                  std::span<const float> back) {
  constexpr double kNoMost = std::numeric_limits<double>::max();
  switch (spec.kind) {
    case CodecKind::kNone: return require_half_float(values, back, 0.0, 0.0, kNoMost);
    case CodecKind::kBf16:
      return require_half_float(values, back, 0x1p-8, 0x1p-134, 0x1.fep127);
    case CodecKind::kFp16: return require_half_float(values, back, 0x1p-11, 0x1p-25, 65504.0);
    case CodecKind::kInt8: return require_int8(values, back);
    case CodecKind::kThreshold:
      return spec.threshold > 0.0F ? require_threshold(values, back, spec.threshold)
                                   : require_largest_fifth(values, back);
    case CodecKind::kTopK: return require_topk(values, back, spec.percent);
    case CodecKind::kOneBit: return require_onebit(values, back);
  }
}

TEST_CASE("Each codec keeps its rule") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  const std::string text = GENERATE(from_range(test::kCodecTexts));
  CAPTURE(seed, text);
  const CodecSpec spec = test::codec_of(text);
  for (const std::size_t count : test::kCodecCounts) {
    for (const Values kind : test::kAllValues) {
      // The longest once.
      if (count > 10000 && kind != Values::kGradient) continue;
      CAPTURE(count, static_cast<int>(kind));
      const std::vector<float> values = test::draw_values(kind, count, seed + count);
      const std::vector<std::byte> bytes = test::encoded(spec, values);
      require_rule(spec, values, test::decoded(spec, bytes, count));
      // The same again: nothing is left over from one call to the next.
      REQUIRE(test::encoded(spec, values) == bytes);
    }
  }
}

// Blocks whose values are all negative, all positive, or one of them, in each place.
TEST_CASE("A value of its own in each place") {
  const std::string text = GENERATE(from_range(test::kCodecTexts));
  CAPTURE(text);
  const CodecSpec spec = test::codec_of(text);
  for (std::size_t at = 0; at < 600; ++at) {
    std::vector<float> values(600, -1.0F);
    values[at] = 3.0F;
    require_rule(spec, values, test::sent(spec, values));
    std::vector<float> alone(600, 0.0F);
    alone[at] = -2.0F;
    require_rule(spec, alone, test::sent(spec, alone));
  }
}

TEST_CASE("Bytes are what the formats say, and never above the bound") {
  const auto size = [](const char* text, std::size_t count) {
    const std::vector<float> values = test::draw_values(Values::kUniform, count, 1);
    return test::encoded(test::codec_of(text), values).size();
  };
  CHECK(size("none", 1000) == 4000);
  CHECK(size("bf16", 1000) == 2000);
  CHECK(size("fp16", 1000) == 2000);
  CHECK(size("int8", 1000) == 1000 + 4 * 4);
  CHECK(size("int8", 256) == 260);
  CHECK(size("onebit", 1000) == 125 + 2 * 8);
  CHECK(size("onebit", 513) == 65 + 2 * 8);
  CHECK(size("topk:100", 1000) == 8 + 4000 + 125);
  CHECK(size("topk:1", 1000) <= 8 + 10 * (4 + 2));
  // About half of the values, so the bitmap; then few, so the gaps.
  CHECK(size("threshold:0.5", 1000) < 12 + 125 + 75);
  CHECK(size("threshold:2", 1000) == 12);
  for (const char* text : {"none", "bf16", "fp16", "int8", "onebit"}) CHECK(size(text, 0) == 0);
  CHECK(size("threshold", 0) == 8);
  CHECK(size("threshold", 513) <= 8 + 2 * 4 + 13 + 65);
  CHECK(size("topk", 0) == 8);
  for (const std::string& text : test::kCodecTexts) {
    const CodecSpec spec = test::codec_of(text);
    for (const std::size_t count : {std::size_t{1}, std::size_t{77}, kCodecElementsMax}) {
      // All ones are all sent, which takes the most.
      const std::vector<float> ones(count, 1e5F);
      CHECK(test::encoded(spec, ones).size() <= encoded_bytes_max(spec, count));
    }
  }
}

TEST_CASE("Indices take the shorter of their two forms") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  CAPTURE(seed);
  for (const std::size_t count : {std::size_t{1}, std::size_t{40}, std::size_t{1000},
                                  std::size_t{20000}, kCodecElementsMax}) {
    const std::vector<float> values = test::draw_values(Values::kUniform, count, seed);
    for (const float t : {0.5F, 0.8F, 0.85F, 0.87F, 0.88F, 0.9F, 0.99F, 0.999F, 0.9999F}) {
      std::size_t entries = 0, gaps = 0, next = 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (std::fabs(values[i]) < t) continue;
        ++entries;
        gaps += i - next < 128 ? 1 : i - next < 128 * 128 ? 2 : 3;
        next = i + 1;
      }
      const std::size_t indices = std::min(gaps, (count + 7) / 8);
      CAPTURE(count, t, gaps);
      REQUIRE(test::encoded({CodecKind::kThreshold, t, 1.0}, values).size() ==
              12 + (entries + 7) / 8 + indices);
    }
  }
}

TEST_CASE("A byte decides between the forms of indices") {
  // 127 gaps of one byte and two of two are 131 bytes.
  std::vector<float> values(1040, 0.0F);
  std::fill_n(values.begin(), 127, 1.0F);
  values[256] = values[400] = 1.0F;
  const CodecSpec spec{CodecKind::kThreshold, 1.0F, 1.0};
  CHECK(test::encoded(spec, values).size() == 12 + 17 + 130);
  values.resize(1056);
  CHECK(test::encoded(spec, values).size() == 12 + 17 + 131);
}

// 1 % at random: gaps of one byte, or of two for one in four.
TEST_CASE("Topk's indices take little beside its values") {
  const std::vector<float> values = test::draw_values(Values::kUniform, kCodecElementsMax, 1);
  const std::size_t entries = kCodecElementsMax / 100;
  CHECK(test::encoded(test::codec_of("topk:1"), values).size() < 8 + entries * 11 / 2);
}

TEST_CASE("What is not finite is refused wherever it is, and the residual stays") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kMost = std::numeric_limits<float>::max();
  const std::string text = GENERATE(from_range(test::kCodecTexts));
  CAPTURE(text);
  const CodecSpec spec = test::codec_of(text);
  const std::size_t count = 1100;
  std::vector<std::byte> room(encoded_bytes_max(spec, count));
  for (const std::size_t at : {0, 1, 255, 511, 1023, 1024, 1099}) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
      std::vector<float> values(count, 1.0F);
      values[at] = bad;
      const Result<std::size_t> lost = encode(spec, values, {}, room);
      REQUIRE_FALSE(lost);
      CHECK(lost.error().code == ErrorCode::kNotFinite);
      std::vector<float> residual(count, 0.25F);
      REQUIRE_FALSE(encode(spec, values, residual, room));
      CHECK(residual == std::vector<float>(count, 0.25F));
    }
    std::vector<float> values(count, 1.0F), residual(count, 0.25F);
    values[at] = residual[at] = kMost;
    const std::vector<float> before = residual;
    const Result<std::size_t> overflow = encode(spec, values, residual, room);
    REQUIRE_FALSE(overflow);
    CHECK(overflow.error().code == ErrorCode::kNotFinite);
    CHECK(residual == before);
    REQUIRE(encode(spec, values, {}, room));
  }
}

}  // namespace
}  // namespace speedo
