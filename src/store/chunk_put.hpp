#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <speedo/base/result.hpp>

#include "store/key_value.hpp"
#include "store/record_codec.hpp"

namespace speedo {

// What all chunks that go to one copy of a record have in common.
struct ChunkDestination {
  const RecordKeys& names;
  std::uint64_t term = 0;
  std::uint32_t slot = 0;
  std::uint64_t version = 0;
  CodecKind codec = CodecKind::kNone;
  std::uint32_t expiry_seconds = 0;   // 0: never
  std::uint64_t manifest_server = 0;  // the incarnation that it is for; see only_with_manifest()
  std::atomic<std::uint64_t>* progress = nullptr;  // see KvOperation
};

// Queues the writing of a chunk, whose checksum is made on its way. `bytes` belong to the operation
// until it is done.
KvPtr put_chunk(KeyValue& map, const ChunkDestination& where, std::size_t chunk,
                std::span<const std::byte> bytes);
// Waits for all of them; none is null. Errors: those of the map.
Result<void> wait_for_puts(std::span<const KvPtr> puts);
// Of a chunk that was put. Requires: it is done, without an error.
std::uint64_t checksum_put(const KvOperation& operation);

}  // namespace speedo
