#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <speedo/codec/codec.hpp>

namespace speedo {

// Codecs that send some of the values, with where they lie: kThreshold and kTopK. Bytes:
//
//   u32 entries  u32 form of the index set (codec/index_set.hpp)
//   threshold  float T  a bit for each entry, 1 if it is -T, the first in the lowest bit  index set
//              or, 2 added to the form, a float T for each 512 values, 1 where none is sent
//   topk       a float for each entry  index set

// Bytes of the two numbers: no message is shorter.
inline constexpr std::size_t kSparseHead = 2 * sizeof(std::uint32_t);
std::size_t sparse_bytes_max(const CodecSpec& spec, std::size_t count);

// Writes what `values`, all finite, come to; returns how many bytes it wrote. `left` is empty, or
// `values` themselves, from which what is written is taken off.
std::size_t write_sparse(const CodecSpec& spec, std::span<const float> values,
                         std::span<float> left, std::byte* target);

// Returns how many bytes, the first of `bytes`, it was: none if write_sparse() cannot have written
// this; `target` is void then.
std::optional<std::size_t> read_sparse(const CodecSpec& spec, std::span<const std::byte> bytes,
                                       std::span<float> target);

}  // namespace speedo
