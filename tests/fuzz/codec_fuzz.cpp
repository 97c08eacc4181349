// Floats in fewer bytes: what is decoded is finite, and can be encoded again.
#include <cmath>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/codec/codec.hpp>

#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(codec)(Bytes bytes) {
  Input input(bytes);
  const auto kind = codec_kind(input.byte());
  if (!kind) return;
  // Most lengths are a few blocks of 256 and 512 values; every now and then one is a whole chunk.
  const std::size_t count = input.flag() ? kCodecElementsMax : input.number<std::uint16_t>() % 4096;
  std::vector<float> values(count);
  if (!decode({.kind = *kind}, input.left(), values)) return;
  for (const float value : values) SPEEDO_ASSERT(std::isfinite(value));
  const CodecSpec spec{.kind = *kind};
  std::vector<std::byte> encoded(encoded_bytes_max(spec, count));
  const auto size = encode(spec, values, {}, encoded);
  SPEEDO_ASSERT(size);
  SPEEDO_ASSERT(decode(spec, Bytes(encoded).first(*size), values));
  std::vector<float> residual(count);
  const auto fed_back = encode(spec, values, residual, encoded);
  SPEEDO_ASSERT(fed_back && decode(spec, Bytes(encoded).first(*fed_back), values));
}

}  // namespace
}  // namespace speedo::fuzz
