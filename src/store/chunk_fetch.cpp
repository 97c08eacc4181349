#include "store/chunk_fetch.hpp"

#include <utility>

#include <speedo/base/digest.hpp>
#include <speedo/store/layout.hpp>

#include "store/is_lost.hpp"

namespace speedo {

KvPtr fetch_head(KeyValue& map, std::string key) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kGetStart;
  operation->key = std::move(key);
  operation->start_bytes = kChunkHeadBytes;
  map.submit(operation);
  return operation;
}

Result<std::vector<std::size_t>> find_missing(
    std::span<const KvPtr> looks, const std::function<bool(std::size_t, const ChunkHead&)>& fit) {
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (!looks[i]) continue;
    looks[i]->wait();
    if (looks[i]->error && looks[i]->error->code != ErrorCode::kNotFound) return *looks[i]->error;
    const auto head = decode_chunk_head(looks[i]->text);
    if (!head || !fit(i, *head)) missing.push_back(i);
  }
  return missing;
}

// A value is written whole, so that what has its head has its bytes.
Result<std::vector<std::size_t>> find_lost(
    KeyValue& map, std::span<const KvPtr> puts,
    const std::function<std::optional<std::string>(std::size_t)>& doubted) {
  std::vector<KvPtr> looks(puts.size());
  for (std::size_t i = 0; i < puts.size(); ++i) {
    if (auto key = doubted(i)) looks[i] = fetch_head(map, std::move(*key));
  }
  return find_missing(looks, [&](std::size_t i, const ChunkHead&) {
    return looks[i]->text == puts[i]->head;
  });
}

// What is encoded may have any size, and is short.
KvPtr fetch_chunk(KeyValue& map, std::string key, const ExpectedChunk& expected,
                  std::atomic<std::uint64_t>* progress) {
  auto operation = std::make_shared<KvOperation>();
  operation->progress = progress;
  operation->key = std::move(key);
  if (expected.codec == CodecKind::kNone) {
    operation->kind = KvOperation::Kind::kGetExact;
    operation->head.resize(kChunkHeadBytes);
    operation->target = std::as_writable_bytes(expected.target);
  } else {
    operation->kind = KvOperation::Kind::kGetWhole;
  }
  map.submit(operation);
  return operation;
}

Result<ChunkHead> take_chunk(const KvOperation& operation, const ExpectedChunk& expected) {
  operation.wait();
  if (operation.error && operation.error->code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kNotFound, "is gone"};
  }
  if (operation.error && operation.error->code != ErrorCode::kCorrupt) return *operation.error;

  const bool is_plain = expected.codec == CodecKind::kNone;
  const std::string_view whole = operation.text;
  const auto head =
      decode_chunk_head(is_plain ? operation.head : whole.substr(0, kChunkHeadBytes));
  if (!head || head->chunk != expected.chunk) {
    return Error{ErrorCode::kCorrupt, "has a damaged head"};
  }
  const bool is_its = head->version == expected.version && head->codec == expected.codec &&
                      head->checksum == expected.checksum.value_or(head->checksum);
  if (!is_its) return Error{ErrorCode::kNotFound, "was overwritten by a newer one"};
  if (operation.error) return Error{ErrorCode::kCorrupt, "has a wrong length"};
  const auto values =
      is_plain ? std::span<const std::byte>(operation.target)
               : std::as_bytes(std::span(whole)).subspan(kChunkHeadBytes);
  if (checksum_of(values) != head->checksum) {
    return Error{ErrorCode::kCorrupt, "has a wrong checksum"};
  }
  if (!is_plain) SPEEDO_TRY(decode({.kind = expected.codec}, values, expected.target));
  return *head;
}

Error name_chunk(const Error& error, std::size_t chunk, const std::string& what) {
  if (!is_lost(error)) return error;
  return Error{error.code,
               "chunk " + std::to_string(chunk) + " of " + what + ' ' + error.message};
}

}  // namespace speedo
