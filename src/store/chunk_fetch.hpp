#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "store/key_value.hpp"
#include "store/record_codec.hpp"

namespace speedo {

// What has to come.
struct ExpectedChunk {
  std::size_t chunk = 0;
  std::uint64_t version = 0;
  CodecKind codec = CodecKind::kNone;
  std::optional<std::uint64_t> checksum;  // none: any that fits the chunk's values
  std::span<float> target;                // of its exact size
};

// Asks for what is there of a chunk's head, in `text`.
KvPtr fetch_head(KeyValue& map, std::string key);
// Waits for such, null for none: those that are not there, or do not fit(index, head).
// Errors: those of the map, but for kNotFound.
Result<std::vector<std::size_t>> find_missing(
    std::span<const KvPtr> looks, const std::function<bool(std::size_t, const ChunkHead&)>& fit);
// Of chunks that were put, each done without an error: those that are in doubt, as another answers
// now than took them, and are not there. Another is a server that has come back without its data
// or, while a slot moves, the other one of its nodes. `doubted(index)`: the key, or none.
// Errors: those of the map.
Result<std::vector<std::size_t>> find_lost(
    KeyValue& map, std::span<const KvPtr> puts,
    const std::function<std::optional<std::string>(std::size_t)>& doubted);
// Asks for the chunk under `key`; the target belongs to the operation until it is done. `progress`:
// see KvOperation.
KvPtr fetch_chunk(KeyValue& map, std::string key, const ExpectedChunk& expected,
                  std::atomic<std::uint64_t>* progress = nullptr);
// Waits for it; its values are in the target then. Errors: those of the map; kNotFound if it is
// gone or of another record; kCorrupt if it does not fit itself. The last two say of the chunk what
// name_chunk() puts its name before.
Result<ChunkHead> take_chunk(const KvOperation& operation, const ExpectedChunk& expected);
// `what`: the record.
Error name_chunk(const Error& error, std::size_t chunk, const std::string& what);

}  // namespace speedo
