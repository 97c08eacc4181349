#include "store/chunk_put.hpp"

#include <memory>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/digest.hpp>

#include "store/chunked_store.hpp"

namespace speedo {

KvPtr put_chunk(KeyValue& map, const ChunkDestination& where, std::size_t chunk,
                std::span<const std::byte> bytes) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kSet;
  operation->key = where.names.chunk(where.term, where.slot, chunk);
  operation->body = bytes;
  operation->expiry_seconds = where.expiry_seconds;
  operation->progress = where.progress;
  operation->only_server =
      only_with_manifest(map, where.names, operation->key, where.manifest_server);
  operation->make_head = [version = where.version, chunk,
                          codec = where.codec](std::span<const std::byte> body) {
    return encode_chunk_head(
        {.version = version, .chunk = chunk, .codec = codec, .checksum = checksum_of(body)});
  };
  map.submit(operation);
  return operation;
}

Result<void> wait_for_puts(std::span<const KvPtr> puts) {
  for (const KvPtr& put : puts) {
    SPEEDO_ASSERT(put != nullptr);  // every chunk was written
    put->wait();
    if (put->error) return *put->error;
  }
  return {};
}

std::uint64_t checksum_put(const KvOperation& operation) {
  return decode_chunk_head(operation.head)->checksum;
}

}  // namespace speedo
