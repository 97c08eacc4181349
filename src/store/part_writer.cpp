#include "store/part_writer.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

#include "store/chunk_fetch.hpp"
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
                    .version = info.version,
                    .expiry_seconds = policy_of(key).expiry_seconds}),
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

// True if there were any.
Result<bool> ChunkPartWriter::rewrite_lost_chunks() {
  const auto chunk_at = [this](std::size_t place) {
    return where_.part + place * shared_->map->parts();
  };
  // In whatever order they were written: of two incarnations either may be the newer one.
  const bool are_of_one = std::ranges::all_of(
      chunks_, [&](const KvPtr& each) { return each->server == chunks_.front()->server; });
  const auto doubted = [&](std::size_t place) -> std::optional<std::string> {
    if (are_of_one) return std::nullopt;
    return names_.chunk(destination_.term, destination_.slot, chunk_at(place));
  };
  SPEEDO_ASSIGN(const std::vector<std::size_t> lost, find_lost(*shared_->map, chunks_, doubted));
  for (const std::size_t place : lost) {
    chunks_[place] =
        put_chunk(*shared_->map, destination_, chunk_at(place), chunks_[place]->body);
  }
  return !lost.empty();
}

Result<WrittenPart> ChunkPartWriter::finish() {
  WrittenPart written{.slot = where_.slot, .checksums = {}};
  if (chunks_.empty()) return written;
  for (int attempt = 0; attempt < kStoreAttemptsMax; ++attempt) {
    SPEEDO_TRY(wait_for_puts(chunks_));
    SPEEDO_ASSIGN(const bool lost, rewrite_lost_chunks());
    if (lost) continue;
    for (const KvPtr& chunk : chunks_) written.checksums.push_back(checksum_put(*chunk));
    return written;
  }
  return Error{ErrorCode::kUnavailable,
               "the store restarts faster than record '" + key_ + "' can be written"};
}

}  // namespace speedo
