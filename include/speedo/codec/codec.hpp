#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <speedo/base/limits.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

// Floats in fewer bytes, a chunk of a record at a time, with error feedback: what one message
// leaves out, the next ones bring. Pure arithmetic: the same bytes and the same floats on every
// machine, whatever its instruction set (no fused operations, sums in a fixed order).
// src/codec/README.md has the formats. Thread safety: any functions, from any threads at once.

// Floats that one call takes, at most: those of a record's chunk.
inline constexpr std::size_t kCodecElementsMax = kChunkBytes / sizeof(float);

// The numbers are those of stored records (store/layout.hpp).
enum class CodecKind : std::uint32_t {
  kNone = 1,       // float32 as it is
  kBf16 = 2,       // 8 bits of mantissa: to the nearest, ties to even
  kFp16 = 3,       // IEEE 754 binary16: the same
  kInt8 = 4,       // whole multiples of a scale, one for each 256 values
  kThreshold = 5,  // +T or -T where the magnitude is T or more, else nothing (Strom 2015); or of
                   // the largest fifth of the values, T being their mean in each 512 values
  kTopK = 6,       // the largest magnitudes as float32, else nothing
  kOneBit = 7,     // the sign, two reconstruction values for each 512 values (Seide et al. 2014)
};
// Nothing if it is none of them.
std::optional<CodecKind> codec_kind(std::uint32_t number);

struct CodecSpec {
  CodecKind kind = CodecKind::kNone;
  float threshold = 0.0F;  // of kThreshold: finite, above 0; 0: of the largest fifth
  double percent = 10.0;   // of kTopK: of the values, above 0 and at most 100

  friend bool operator==(const CodecSpec&, const CodecSpec&) = default;
};

// Whether its parameters are in their ranges.
bool is_codec_sound(const CodecSpec& spec);

// Reads none, bf16, fp16, int8, threshold[:T], topk[:P] (P percent of the values) or onebit;
// without T or P it is the default above. Error: kUsage, saying what is allowed.
Result<CodecSpec> parse_codec(std::string_view text);
// The shortest text that parse_codec() reads as this codec, with its parameter.
std::string to_string(const CodecSpec& spec);

// Of a chunk's values those from `begin` up to `end` travel as they are, as float32.
struct ExactRange {
  std::size_t begin = 0, end = 0;
};
// Bytes that encode() needs for these at most, beside encoded_bytes_max(): zeros take less.
std::size_t exact_bytes(std::span<const ExactRange> exact);

// Bytes that encode() needs for `count` values, at most; for all but kThreshold and kTopK it is
// what it writes. Requires: count <= kCodecElementsMax.
std::size_t encoded_bytes_max(const CodecSpec& spec, std::size_t count);
// The same whatever T, P and the exact ranges are, and the least that it can write.
struct CodecBytes {
  std::size_t min, max;
};
CodecBytes encoded_bytes(CodecKind kind, std::size_t count);

// Writes `values` to the front of `target` and returns how many bytes it wrote.
//
// With a residual, what is written is the input values[i] + residual[i]; then residual[i] is the
// input less what decode() will give, both in float arithmetic. No more than a rounding is lost,
// and nothing with kNone and, below their largest, kBf16 and kFp16. Without a residual (empty)
// what is not written is lost.
//
// Magnitudes beyond the largest of kBf16 and kFp16 (65504) become the largest; a block of kInt8
// without a magnitude from 1.5e-36 on becomes zeros.
//
// In the ranges of `exact` decode() will give the input itself, of which nothing is left: not to be
// cut, rounded, or left for later are values that no later message makes up for in time. The
// codec takes them for zeros, which are of no mean.
//
// Errors: kNotFinite if an input is NaN or infinite, also as the sum of the two; the residual is
// unchanged then, and `target` void.
// Requires: at most kCodecElementsMax values; a residual of the same size, or none; `target` of
// encoded_bytes_max() and exact_bytes() or more; no two of the three overlap. With exact ranges: a
// residual, and not kNone; they ascend, do not overlap, and none is empty.
Result<std::size_t> encode(const CodecSpec& spec, std::span<const float> values,
                           std::span<float> residual, std::span<std::byte> target,
                           std::span<const ExactRange> exact = {});

// Brings back the target.size() values that `bytes` were made of: all of them finite, those not
// sent 0. `bytes` carry T, P and where values lie: of `spec` only the kind counts.
// Error: kCorrupt if encode() cannot have written these bytes for so many values; `target` is void
// then. Nothing outside of the two is touched, whatever the bytes are.
// Requires: at most kCodecElementsMax values; the two do not overlap.
Result<void> decode(const CodecSpec& spec, std::span<const std::byte> bytes,
                    std::span<float> target);

}  // namespace speedo
