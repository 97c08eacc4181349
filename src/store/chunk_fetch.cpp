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

Result<ChunkHead> take_chunk(const KvOperation& operation, std::size_t chunk,
                             const std::function<bool(const ChunkHead&)>& is_wanted,
                             const std::string& what) {
  const auto bad = [&](ErrorCode code, const char* why) {
    return Error{code, "chunk " + std::to_string(chunk) + " of " + what + ' ' + why};
  };
  operation.wait();
  if (operation.error && operation.error->code == ErrorCode::kNotFound) {
    return bad(ErrorCode::kNotFound, "is gone");
  }
  if (operation.error && operation.error->code != ErrorCode::kCorrupt) return *operation.error;

  const auto head = decode_chunk_head(operation.head);
  if (!head || head->chunk != chunk) return bad(ErrorCode::kCorrupt, "has a damaged head");
  if (!is_wanted(*head)) return bad(ErrorCode::kNotFound, "was overwritten by a newer one");
  if (operation.error) return bad(ErrorCode::kCorrupt, "has a wrong length");
  if (checksum_of(operation.target) != head->checksum) {
    return bad(ErrorCode::kCorrupt, "has a wrong checksum");
  }
  return *head;
}

}  // namespace speedo
