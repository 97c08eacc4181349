#include "store/part_writer.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

#include "store/chunk_range.hpp"

namespace speedo {

ChunkPartWriter::ChunkPartWriter(std::shared_ptr<StoreShared> shared, std::string_view key,
                                 const RecordInfo& info, RecordPart where)
    : shared_(std::move(shared)),
      key_(key),
      names_(shared_->job, key),
      destination_({.names = names_,
                    .term = shared_->term,
                    .slot = where.slot,
                    .version = info.version}),
      element_count_(info.element_count),
      where_(where),
      chunks_(chunks_of_part(info.element_count, where.part, shared_->map->parts())) {
  SPEEDO_ASSERT(info.codec == CodecKind::kNone && where.part < shared_->map->parts());
}

std::size_t ChunkPartWriter::place_of(std::size_t chunk) const {
  SPEEDO_ASSERT(chunk % shared_->map->parts() == where_.part);
  return chunk / shared_->map->parts();
}

void ChunkPartWriter::write(std::size_t chunk, std::span<const float> values) {
  KvPtr& place = chunks_[place_of(chunk)];
  SPEEDO_ASSERT(!place);
  SPEEDO_ASSERT(values.size() == chunk_elements(element_count_, chunk));
  place = put_chunk(*shared_->map, destination_, chunk, std::as_bytes(values));
}

bool ChunkPartWriter::is_sent() const {
  return std::ranges::all_of(chunks_, [](const KvPtr& each) { return each && each->is_done(); });
}

Result<void> ChunkPartWriter::wait_for_chunks() {
  for (const KvPtr& chunk : chunks_) {
    SPEEDO_ASSERT(chunk != nullptr);  // every chunk was written
    chunk->wait();
    if (chunk->error) return *chunk->error;
  }
  return {};
}

// A server that came back in the middle of it without its data lacks what it took before.
bool ChunkPartWriter::rewrite_lost_chunks() {
  const std::uint64_t newest = chunks_.back()->server;
  bool any = false;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    if (chunks_[i]->server == newest) continue;
    const std::size_t chunk = where_.part + i * shared_->map->parts();
    chunks_[i] = put_chunk(*shared_->map, destination_, chunk, chunks_[i]->body);
    any = true;
  }
  return any;
}

Result<WrittenPart> ChunkPartWriter::finish() {
  WrittenPart written{.slot = where_.slot, .checksums = {}};
  if (chunks_.empty()) return written;
  int attempts = 0;
  do {
    if (++attempts > kStoreAttemptsMax) {
      return Error{ErrorCode::kUnavailable,
                   "the store restarts faster than record '" + key_ + "' can be written"};
    }
    SPEEDO_TRY(wait_for_chunks());
  } while (rewrite_lost_chunks());
  for (const KvPtr& chunk : chunks_) written.checksums.push_back(checksum_put(*chunk));
  return written;
}

}  // namespace speedo
