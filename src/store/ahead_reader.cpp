#include "store/ahead_reader.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>

#include "store/chunk_range.hpp"

namespace speedo {
ChunkAheadReader::ChunkAheadReader(std::shared_ptr<StoreShared> shared, std::string_view key,
                                   const AheadRecord& record)
    : shared_(std::move(shared)),
      key_(key),
      names_(shared_->job, key),
      record_(record),
      slots_(shared_->map->parts()),
      chunks_(chunk_count(record.element_count)),
      targets_(chunks_.size()),
      codecs_(chunks_.size(), CodecKind::kNone),
      checksums_(chunks_.size()) {}

// The targets belong to the caller again once the reader is gone.
ChunkAheadReader::~ChunkAheadReader() { abandon(chunks_); }

void ChunkAheadReader::look(std::span<const std::size_t> chunks) {
  looks_.clear();
  const std::uint32_t slots = policy_of(key_).slots;
  for (const std::size_t chunk : chunks) {
    SPEEDO_ASSERT(chunk < chunks_.size());
    Look look{chunk, std::vector<KvPtr>(slots)};
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      if (slots_[server_of(chunk)].value_or(slot) != slot) continue;
      look.slots[slot] = fetch_head(*shared_->map, names_.chunk(record_.term, slot, chunk));
    }
    looks_.push_back(std::move(look));
  }
}

bool ChunkAheadReader::is_answered() const {
  return std::ranges::all_of(looks_, [](const Look& look) {
    return std::ranges::all_of(look.slots,
                               [](const KvPtr& each) { return !each || each->is_done(); });
  });
}

std::vector<bool> ChunkAheadReader::seen() {
  std::vector<bool> there;
  for (const Look& look : std::exchange(looks_, {})) there.push_back(is_there(look));
  return there;
}

bool ChunkAheadReader::is_there(const Look& look) {
  bool there = false;
  for (std::uint32_t slot = 0; slot < look.slots.size(); ++slot) {
    if (!look.slots[slot]) continue;
    look.slots[slot]->wait();
    if (look.slots[slot]->error) continue;
    const auto head = decode_chunk_head(look.slots[slot]->text);
    if (!head || head->version != record_.version || head->chunk != look.chunk) continue;
    auto& known = slots_[server_of(look.chunk)];
    if (!known) known = slot;
    if (*known != slot) continue;
    there = true;
    codecs_[look.chunk] = head->codec;
  }
  return there;
}

void ChunkAheadReader::request(std::size_t chunk, std::span<float> target) {
  const std::optional<std::uint32_t> slot = slots_[server_of(chunk)];
  SPEEDO_ASSERT(chunk < chunks_.size() && slot);
  SPEEDO_ASSERT(!chunks_[chunk]);
  SPEEDO_ASSERT(target.size() == chunk_elements(record_.element_count, chunk));
  targets_[chunk] = target;
  chunks_[chunk] =
      fetch_chunk(*shared_->map, names_.chunk(record_.term, *slot, chunk), expected(chunk));
}

ExpectedChunk ChunkAheadReader::expected(std::size_t chunk) const {
  return {.chunk = chunk,
          .version = record_.version,
          .codec = codecs_[chunk],
          .checksum = std::nullopt,
          .target = targets_[chunk]};
}

Result<void> ChunkAheadReader::wait(std::size_t chunk) {
  SPEEDO_ASSERT(chunk < chunks_.size());
  SPEEDO_ASSERT(chunks_[chunk] != nullptr);
  const auto head = take_chunk(*chunks_[chunk], expected(chunk));
  if (!head) {
    return name_chunk(head.error(), chunk,
                      "the unfinished record '" + key_ + "' of job '" + shared_->job + "'");
  }
  checksums_[chunk] = head->checksum;
  return {};
}

std::uint64_t ChunkAheadReader::checksum(std::size_t chunk) const {
  SPEEDO_ASSERT(chunk < checksums_.size() && checksums_[chunk]);
  return *checksums_[chunk];
}

}  // namespace speedo
