#include "store/chunk_reader.hpp"

#include <speedo/base/assert.hpp>
#include <speedo/base/digest.hpp>
#include <speedo/store/layout.hpp>

namespace speedo {

ChunkReader::ChunkReader(std::shared_ptr<StoreShared> shared, std::string_view key,
                         RecordManifest manifest)
    : shared_(std::move(shared)),
      key_(key),
      names_(shared_->job, key),
      manifest_(std::move(manifest)),
      chunks_(manifest_.chunks.size()) {}

// The targets belong to the caller again once the reader is gone.
ChunkReader::~ChunkReader() {
  for (const KvPtr& chunk : chunks_) {
    if (chunk) chunk->abandon();
  }
  for (const KvPtr& chunk : chunks_) {
    if (chunk) chunk->wait();
  }
}

void ChunkReader::request(std::size_t chunk, std::span<float> target) {
  SPEEDO_ASSERT(chunk < chunks_.size());
  SPEEDO_ASSERT(!chunks_[chunk]);
  SPEEDO_ASSERT(target.size_bytes() == manifest_.chunks[chunk].bytes);
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kGetExact;
  operation->key = names_.chunk(manifest_.info.epoch, manifest_.slot, chunk);
  operation->head.resize(kChunkHeadBytes);
  operation->target = std::as_writable_bytes(target);
  chunks_[chunk] = operation;
  shared_->map->submit(std::move(operation));
}

Result<void> ChunkReader::wait(std::size_t chunk) {
  SPEEDO_ASSERT(chunk < chunks_.size());
  SPEEDO_ASSERT(chunks_[chunk] != nullptr);
  const KvOperation& operation = *chunks_[chunk];
  operation.wait();
  if (operation.error && operation.error->code == ErrorCode::kNotFound) {
    return bad_chunk(ErrorCode::kNotFound, chunk, "is gone");
  }
  if (operation.error && operation.error->code != ErrorCode::kCorrupt) return *operation.error;

  const auto head = decode_chunk_head(operation.head);
  if (!head || head->chunk != chunk) {
    return bad_chunk(ErrorCode::kCorrupt, chunk, "has a damaged head");
  }
  const bool promised =
      head->version == manifest_.info.version && head->checksum == manifest_.chunks[chunk].checksum;
  if (!promised) return bad_chunk(ErrorCode::kNotFound, chunk, "was overwritten by a newer one");
  if (operation.error) return bad_chunk(ErrorCode::kCorrupt, chunk, "has a wrong length");
  if (checksum_of(operation.target) != head->checksum) {
    return bad_chunk(ErrorCode::kCorrupt, chunk, "has a wrong checksum");
  }
  return {};
}

Error ChunkReader::bad_chunk(ErrorCode code, std::size_t chunk, const std::string& what) const {
  return Error{code, "chunk " + std::to_string(chunk) + " of record '" + key_ + "' version " +
                         std::to_string(manifest_.info.version) + " of job '" + shared_->job +
                         "' " + what};
}

}  // namespace speedo
