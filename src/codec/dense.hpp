#pragma once

#include <cstddef>
#include <span>

#include <speedo/codec/codec.hpp>

namespace speedo {

// Codecs that say something of every value: so many bytes for so many values.
struct DenseCodec {
  // Of `count` values. Values are coded in blocks that divide kDenseTile, so a tile's bytes begin
  // at bytes(values before it).
  std::size_t (*bytes)(std::size_t count);
  // Writes bytes(values.size()) of finite values.
  void (*pack)(std::span<const float> values, std::byte* target);
  // The same of values + residual; what unpack() will not give stays in the residual, as encode()
  // says. For codecs that do it in one loop, as fast as memory is; null for others, of which
  // unpack() tells what stays.
  void (*pack_with_residual)(std::span<const float> values, std::span<float> residual,
                             std::byte* target);
  // Reads as many; false if pack() cannot have written them, `target` is void then.
  bool (*unpack)(const std::byte* source, std::span<float> target);
  // As pack(), of values that begin at element `start` of a chunk, where those in the ranges are
  // zeros that nobody decodes: the others come out as without them. Null where they do anyway.
  void (*pack_around)(std::span<const float> values, std::size_t start,
                      std::span<const ExactRange> exact, std::byte* target) = nullptr;
};

// Values that are coded at a time: they stay in the first-level cache from one loop to the next.
inline constexpr std::size_t kDenseTile = 1024;

// The codec of that kind, or none for the two that are not dense.
const DenseCodec* dense_codec(CodecKind kind);

extern const DenseCodec kBf16Codec;
extern const DenseCodec kFp16Codec;
extern const DenseCodec kInt8Codec;
extern const DenseCodec kOneBitCodec;

}  // namespace speedo
