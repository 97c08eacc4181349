#include <speedo/codec/codec.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <speedo/base/assert.hpp>

#include "base/simd.hpp"
#include "codec/bits.hpp"
#include "codec/dense.hpp"
#include "codec/exact.hpp"
#include "codec/magnitude.hpp"
#include "codec/sparse.hpp"

namespace speedo {
namespace codec_kernels {

// The pragmas: arrays are apart, so no iteration reads what another one writes.
SPEEDO_MULTIVERSION void add(std::size_t n, const float* x, float* y) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) y[i] += x[i];
}

SPEEDO_MULTIVERSION void subtract(std::size_t n, const float* x, float* y) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) y[i] -= x[i];
}

}  // namespace codec_kernels

namespace {

std::size_t float_bytes(std::size_t count) { return count * sizeof(float); }

void pack_floats(std::span<const float> values, std::byte* target) {
  std::ranges::copy(std::as_bytes(values), target);
}

bool unpack_floats(const std::byte* source, std::span<float> target) {
  std::copy_n(source, target.size_bytes(), std::as_writable_bytes(target).begin());
  return largest_magnitude(target) < kInfinityBits;
}

const DenseCodec kFloatCodec = {float_bytes, pack_floats, nullptr, unpack_floats};

void check_codec(const CodecSpec& spec, std::size_t count) {
  SPEEDO_ASSERT(count <= kCodecElementsMax);
  SPEEDO_ASSERT(is_codec_sound(spec));
}

void write_with_residual(const DenseCodec& codec, std::span<const float> values,
                         std::span<float> residual, std::span<const ExactRange> exact,
                         std::byte* target) {
  if (codec.pack_with_residual != nullptr) {
    codec.pack_with_residual(values, residual, target);
    return;
  }
  std::array<float, kDenseTile> decoded;
  for (std::size_t start = 0; start < values.size(); start += kDenseTile) {
    const std::size_t size = std::min(kDenseTile, values.size() - start);
    const std::span<float> input = residual.subspan(start, size);
    std::byte* const bytes = target + codec.bytes(start);
    codec_kernels::add(size, values.data() + start, input.data());
    if (codec.pack_around != nullptr) {
      while (!exact.empty() && exact.front().end <= start) exact = exact.subspan(1);
      codec.pack_around(input, start, exact, bytes);
    } else {
      codec.pack(input, bytes);
    }
    const bool is_sound = codec.unpack(bytes, std::span(decoded).first(size));
    SPEEDO_ASSERT(is_sound);
    codec_kernels::subtract(size, decoded.data(), input.data());
  }
}

// The codec's own bytes, of finite inputs, which are zeros in the ranges of `exact`.
std::size_t write_own(const CodecSpec& spec, std::span<const float> values,
                      std::span<float> residual, std::span<const ExactRange> exact,
                      std::byte* target) {
  const bool feedback = !residual.empty();
  const DenseCodec* const dense = dense_codec(spec.kind);
  if (dense == nullptr) {
    if (feedback) codec_kernels::add(values.size(), values.data(), residual.data());
    return write_sparse(spec, feedback ? residual : values, residual, target);
  }
  if (feedback) {
    write_with_residual(*dense, values, residual, exact, target);
  } else {
    dense->pack(values, target);
  }
  return dense->bytes(values.size());
}

// How many they were; none if write_own() cannot have written them.
std::optional<std::size_t> read_own(const CodecSpec& spec, std::span<const std::byte> bytes,
                                    std::span<float> target) {
  const DenseCodec* const dense = dense_codec(spec.kind);
  if (dense == nullptr) return read_sparse(spec, bytes, target);
  const std::size_t size = dense->bytes(target.size());
  if (bytes.size() < size || !dense->unpack(bytes.data(), target)) return std::nullopt;
  return size;
}

// Where the ranges are, the residual is what makes inputs of the codec zeros.
std::size_t write_with_exact(const CodecSpec& spec, std::span<const float> values,
                             std::span<float> residual, std::span<std::byte> target,
                             std::span<const ExactRange> exact) {
  const auto for_each_exact = [&](const auto& visit) {
    for (const ExactRange& range : exact) {
      for (std::size_t i = range.begin; i < range.end; ++i) visit(values[i], residual[i]);
    }
  };
  for_each_exact([](float value, float& left) { left += value; });
  std::byte* const behind = target.data() + encoded_bytes_max(spec, values.size());
  const std::size_t size = write_exact(residual, exact, behind);
  for_each_exact([](float value, float& left) { left = -value; });
  const std::size_t own = write_own(spec, values, residual, exact, target.data());
  for_each_exact([](float, float& left) { left = 0.0F; });
  std::memmove(target.data() + own, behind, size);
  return own + size;
}

Error damaged_codec(const CodecSpec& spec, std::size_t bytes, std::size_t count) {
  return {ErrorCode::kCorrupt, std::to_string(bytes) + " bytes are not what codec '" +
                                   to_string(spec) + "' makes of " + std::to_string(count) +
                                   " floats: they were damaged, or are of another codec"};
}

}  // namespace

const DenseCodec* dense_codec(CodecKind kind) {
  switch (kind) {
    case CodecKind::kNone: return &kFloatCodec;
    case CodecKind::kBf16: return &kBf16Codec;
    case CodecKind::kFp16: return &kFp16Codec;
    case CodecKind::kInt8: return &kInt8Codec;
    case CodecKind::kOneBit: return &kOneBitCodec;
    case CodecKind::kThreshold:
    case CodecKind::kTopK: break;
  }
  return nullptr;
}

std::optional<CodecKind> codec_kind(std::uint32_t number) {
  const auto kind = static_cast<CodecKind>(number);
  const bool is_known = kind >= CodecKind::kNone && kind <= CodecKind::kOneBit;
  return is_known ? std::optional(kind) : std::nullopt;
}

bool is_codec_sound(const CodecSpec& spec) {
  return std::isfinite(spec.threshold) && spec.threshold >= 0.0F && spec.percent > 0.0 &&
         spec.percent <= 100.0;
}

CodecBytes encoded_bytes(CodecKind kind, std::size_t count) {
  const CodecSpec widest{.kind = kind, .percent = 100.0};
  const std::size_t most = encoded_bytes_max(widest, count);
  const std::size_t exact = kind == CodecKind::kNone ? 0 : exact_bytes_max(count);
  return {dense_codec(kind) != nullptr ? most : kSparseHead, most + exact};
}

std::size_t encoded_bytes_max(const CodecSpec& spec, std::size_t count) {
  check_codec(spec, count);
  const DenseCodec* const dense = dense_codec(spec.kind);
  return dense != nullptr ? dense->bytes(count) : sparse_bytes_max(spec, count);
}

Result<std::size_t> encode(const CodecSpec& spec, std::span<const float> values,
                           std::span<float> residual, std::span<std::byte> target,
                           std::span<const ExactRange> exact) {
  SPEEDO_ASSERT(target.size() >= encoded_bytes_max(spec, values.size()) + exact_bytes(exact));
  const bool feedback = !residual.empty();
  if (feedback) SPEEDO_ASSERT(residual.size() == values.size());
  const std::int32_t most =
      feedback ? largest_sum_magnitude(values, residual) : largest_magnitude(values);
  if (most >= kInfinityBits) {
    return Error{ErrorCode::kNotFinite, "a value that is to be sent is NaN or infinite"};
  }
  if (exact.empty()) return write_own(spec, values, residual, {}, target.data());
  SPEEDO_ASSERT(feedback && spec.kind != CodecKind::kNone);
  return write_with_exact(spec, values, residual, target, exact);
}

Result<void> decode(const CodecSpec& spec, std::span<const std::byte> bytes,
                    std::span<float> target) {
  SPEEDO_ASSERT(target.size() <= kCodecElementsMax);
  const std::optional<std::size_t> own = read_own(spec, bytes, target);
  const bool is_whole = own == bytes.size();
  const bool may_go_on = own && spec.kind != CodecKind::kNone;
  const bool is_sound = is_whole || (may_go_on && read_exact(bytes.subspan(*own), target));
  if (!is_sound) return damaged_codec(spec, bytes.size(), target.size());
  return {};
}

}  // namespace speedo
