#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <speedo/base/result.hpp>

#include "store/key_value.hpp"
#include "store/record_codec.hpp"

namespace speedo {

// Asks for the chunk under `key`; `target` has its exact size and belongs to the operation until it
// is done.
KvPtr fetch_chunk(KeyValue& map, std::string key, std::span<float> target);

// What has to come.
struct ExpectedChunk {
  std::size_t chunk = 0;
  std::uint64_t version = 0;
  std::optional<std::uint64_t> checksum;  // none: any that fits the chunk's values
};
// Waits for it. Errors: those of the map; kNotFound if it is gone or of another record; kCorrupt if
// it does not fit itself. The last two say of the chunk what name_chunk() puts its name before.
Result<ChunkHead> take_chunk(const KvOperation& operation, const ExpectedChunk& expected);
// `what`: the record.
Error name_chunk(const Error& error, std::size_t chunk, const std::string& what);

}  // namespace speedo
