#include "store/chunk_fetch.hpp"

#include <utility>

#include <speedo/base/digest.hpp>
#include <speedo/store/layout.hpp>

namespace speedo {

KvPtr fetch_chunk(KeyValue& map, std::string key, std::span<float> target) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kGetExact;
  operation->key = std::move(key);
  operation->head.resize(kChunkHeadBytes);
  operation->target = std::as_writable_bytes(target);
  map.submit(operation);
  return operation;
}

Result<ChunkHead> take_chunk(const KvOperation& operation, const ExpectedChunk& expected) {
  operation.wait();
  if (operation.error && operation.error->code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kNotFound, "is gone"};
  }
  if (operation.error && operation.error->code != ErrorCode::kCorrupt) return *operation.error;

  const auto head = decode_chunk_head(operation.head);
  if (!head || head->chunk != expected.chunk) {
    return Error{ErrorCode::kCorrupt, "has a damaged head"};
  }
  const bool is_its = head->version == expected.version &&
                      head->checksum == expected.checksum.value_or(head->checksum);
  if (!is_its) return Error{ErrorCode::kNotFound, "was overwritten by a newer one"};
  if (operation.error) return Error{ErrorCode::kCorrupt, "has a wrong length"};
  if (checksum_of(operation.target) != head->checksum) {
    return Error{ErrorCode::kCorrupt, "has a wrong checksum"};
  }
  return *head;
}

Error name_chunk(const Error& error, std::size_t chunk, const std::string& what) {
  const bool is_of_chunk =
      error.code == ErrorCode::kNotFound || error.code == ErrorCode::kCorrupt;
  if (!is_of_chunk) return error;
  return Error{error.code,
               "chunk " + std::to_string(chunk) + " of " + what + ' ' + error.message};
}

}  // namespace speedo
