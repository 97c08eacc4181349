#include "store/chunk_reader.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "store/chunk_range.hpp"

namespace speedo {

ChunkReader::ChunkReader(std::shared_ptr<StoreShared> shared, std::string_view key,
                         RecordManifest manifest, std::vector<RecordKeys> names)
    : shared_(std::move(shared)),
      key_(key),
      names_(std::move(names)),
      manifest_(std::move(manifest)),
      chunks_(manifest_.chunks.size()),
      targets_(manifest_.chunks.size()) {}

// The targets belong to the caller again once the reader is gone.
ChunkReader::~ChunkReader() { abandon(chunks_); }

std::string ChunkReader::name_of(std::size_t chunk) const {
  return names_[chunk % names_.size()].chunk(manifest_.info.term, manifest_.slot_of(chunk), chunk);
}

// All chunks, since what a server lacks that was replaced by a copy of itself, or has read its log
// up to a point, is what it took last. On the manifest's own server, which has taken its chunks
// before it, others may have removed or overwritten one.
Result<bool> ChunkReader::is_whole() {
  std::vector<KvPtr> looks(chunks_.size());
  for (std::size_t chunk = 0; chunk < looks.size(); ++chunk) {
    looks[chunk] = fetch_head(*shared_->map, name_of(chunk));
  }
  const auto is_its = [this](std::size_t chunk, const ChunkHead& head) {
    return head.version == manifest_.info.version &&
           head.checksum == manifest_.chunks[chunk].checksum;
  };
  SPEEDO_ASSIGN(const std::vector<std::size_t> missing, find_missing(looks, is_its));
  return missing.empty();
}

void ChunkReader::request(std::size_t chunk, std::span<float> target) {
  SPEEDO_ASSERT(chunk < chunks_.size());
  SPEEDO_ASSERT(!chunks_[chunk]);
  SPEEDO_ASSERT(target.size() == chunk_elements(manifest_.info.element_count, chunk));
  targets_[chunk] = target;
  chunks_[chunk] = fetch_chunk(*shared_->map, name_of(chunk), expected(chunk), progress_);
}

ExpectedChunk ChunkReader::expected(std::size_t chunk) const {
  return {.chunk = chunk,
          .version = manifest_.info.version,
          .codec = manifest_.info.codec,
          .checksum = checksum(chunk),
          .target = targets_[chunk]};
}

Result<void> ChunkReader::wait(std::size_t chunk) {
  SPEEDO_ASSERT(chunk < chunks_.size());
  SPEEDO_ASSERT(chunks_[chunk] != nullptr);
  const auto taken = take_chunk(*chunks_[chunk], expected(chunk));
  if (taken) return {};
  return name_chunk(taken.error(), chunk,
                    "record '" + key_ + "' version " + std::to_string(manifest_.info.version) +
                        " of job '" + shared_->job + "'");
}

}  // namespace speedo
