#include "store/chunk_writer.hpp"

#include <speedo/base/assert.hpp>
#include <speedo/base/digest.hpp>
#include <speedo/store/layout.hpp>

#include "store/chunk_range.hpp"

namespace speedo {

ChunkWriter::ChunkWriter(std::shared_ptr<StoreShared> shared, std::string_view key,
                         const RecordInfo& info)
    : shared_(std::move(shared)), key_(key), names_(shared_->job, key), policy_(policy_of(key)) {
  manifest_.info = info;
  chunks_.resize(chunk_count(info.element_count));
  if (auto slot = choose_slot()) {
    manifest_.slot = *slot;
  } else {
    error_ = slot.error();
  }
}

// The values belong to the caller again once the writer is gone, so it waits for what is under way.
ChunkWriter::~ChunkWriter() {
  for (const KvPtr& chunk : chunks_) {
    if (chunk) chunk->abandon();
  }
  for (const KvPtr& chunk : chunks_) {
    if (chunk) chunk->wait();
  }
}

Result<std::uint32_t> ChunkWriter::choose_slot() {
  {
    const std::lock_guard lock(shared_->mutex);
    const auto last = shared_->last_slots.find(key_);
    if (last != shared_->last_slots.end()) return (last->second + 1) % policy_.slots;
  }
  auto old = read_manifest(*shared_, key_);
  if (old) return (old->slot + 1) % policy_.slots;
  // Nothing readable is there, so nothing can be harmed.
  const ErrorCode code = old.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt) return std::uint32_t{0};
  return old.error();
}

void ChunkWriter::write(std::size_t chunk, std::span<const float> values) {
  SPEEDO_ASSERT(chunk < chunks_.size());
  SPEEDO_ASSERT(!chunks_[chunk]);
  SPEEDO_ASSERT(values.size() == chunk_elements(manifest_.info.element_count, chunk));
  if (!error_) submit_chunk(chunk, std::as_bytes(values));
}

void ChunkWriter::submit_chunk(std::size_t chunk, std::span<const std::byte> bytes) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kSet;
  operation->key = names_.chunk(manifest_.slot, chunk);
  operation->body = bytes;
  operation->expiry_seconds = policy_.expiry_seconds;
  operation->make_head = [version = manifest_.info.version,
                          chunk](std::span<const std::byte> body) {
    return encode_chunk_head({version, chunk, checksum_of(body)});
  };
  chunks_[chunk] = operation;
  shared_->map->submit(std::move(operation));
}

Result<void> ChunkWriter::wait_for_chunks() {
  for (const KvPtr& chunk : chunks_) {
    SPEEDO_ASSERT(chunk != nullptr);  // every chunk was written
    chunk->wait();
    if (chunk->error) return *chunk->error;
  }
  return {};
}

// A server that came back without its data has lost the chunks that it took in its earlier life:
// they go out again. True if there were any.
Result<bool> ChunkWriter::rewrite_lost_chunks(std::uint64_t server) {
  bool any = false;
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (chunks_[chunk]->server == server) continue;
    submit_chunk(chunk, chunks_[chunk]->body);
    any = true;
  }
  if (any) SPEEDO_TRY(wait_for_chunks());
  return any;
}

Result<void> ChunkWriter::write_manifest(std::uint64_t& server) {
  manifest_.checksums.clear();
  for (const KvPtr& chunk : chunks_) {
    manifest_.checksums.push_back(decode_chunk_head(chunk->head)->checksum);
  }
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kSet;
  operation->key = names_.manifest();
  operation->head = encode_manifest(manifest_);
  operation->expiry_seconds = policy_.expiry_seconds;
  SPEEDO_TRY(execute(*shared_->map, operation));
  server = operation->server;
  return {};
}

Result<void> ChunkWriter::finish_record() {
  SPEEDO_TRY(wait_for_chunks());
  for (int attempt = 0; attempt < kStoreAttemptsMax; ++attempt) {
    if (!chunks_.empty()) SPEEDO_TRY(rewrite_lost_chunks(chunks_.back()->server));
    std::uint64_t server = 0;
    SPEEDO_TRY(write_manifest(server));
    SPEEDO_ASSIGN(const bool lost, rewrite_lost_chunks(server));
    if (!lost) return {};
  }
  return Error{ErrorCode::kUnavailable,
               "the store restarts faster than record '" + key_ + "' can be written"};
}

Result<void> ChunkWriter::finish() {
  if (error_) return *error_;
  auto done = finish_record();
  const std::lock_guard lock(shared_->mutex);
  if (done) {
    shared_->last_slots.insert_or_assign(key_, manifest_.slot);
  } else {
    // Whether the manifest arrived is not known: the next put has to look.
    shared_->last_slots.erase(key_);
  }
  return done;
}

}  // namespace speedo
