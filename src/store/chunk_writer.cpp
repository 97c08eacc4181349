#include "store/chunk_writer.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>

#include "store/chunk_fetch.hpp"
#include "store/chunk_put.hpp"
#include "store/chunk_range.hpp"

namespace speedo {

ChunkWriter::ChunkWriter(std::shared_ptr<StoreShared> shared, std::string_view key,
                         const RecordInfo& info, std::uint32_t first_slot)
    : shared_(std::move(shared)),
      key_(key),
      names_(shared_->job, key),
      policy_(policy_of(key)),
      first_slot_(first_slot) {
  SPEEDO_ASSERT(first_slot_ % policy_.slots == 0);
  manifest_.info = info;
  manifest_.info.term = shared_->term;
  chunks_.resize(chunk_count(info.element_count));
  set_state(info.state);
  manifest_.servers = static_cast<std::uint32_t>(shared_->map->parts());
  if (error_) return;
  if (auto known = announce_term(); !known) error_ = known.error();
  if (error_) return;
  take_track();
  if (auto chosen = choose_slot(); !chosen) error_ = chosen.error();
}

void ChunkWriter::take_track() {
  {
    const std::lock_guard lock(shared_->mutex);
    const auto found = shared_->tracks.find(key_);
    if (found != shared_->tracks.end()) track_ = found->second;
  }
  const std::uint64_t term = manifest_.info.term;
  if (track_.term == term && track_.first_slot == first_slot_) return;
  track_.known = false;
  track_.term = term;
  track_.first_slot = first_slot_;
  track_.chunks = 0;
}

// Servers that no manifest is written to learn of a master's term before its first chunks lie
// there, or one that it has replaced could still erase them.
Result<void> ChunkWriter::announce_term() {
  const std::uint64_t term = manifest_.info.term;
  if (term == 0 || shared_->known_term == term) return {};
  for (std::size_t server = 1; server < shared_->map->parts(); ++server) {
    const std::string nothing = RecordKeys(shared_->job, "term").chunk(0, 0, server);
    SPEEDO_TRY(erase_fenced(*shared_, "record '" + key_ + "'", {nothing},
                            shared_->master_of(term)));
  }
  shared_->known_term = term;
  return {};
}

void ChunkWriter::set_state(std::string state) {
  if (state.size() > kStateBytesMax) {
    error_ = Error{ErrorCode::kFull, "record '" + key_ + "' of job '" + shared_->job +
                                         "' has a state of " + std::to_string(state.size()) +
                                         " bytes, the most is " + std::to_string(kStateBytesMax)};
  }
  manifest_.info.state = std::move(state);
}

// The values belong to the caller again once the writer is gone, so it waits for what is under way.
ChunkWriter::~ChunkWriter() { abandon(chunks_); }

// Of this writer's term, and, where writers have the record in turn, in this one's slots.
bool ChunkWriter::is_own(const RecordManifest& manifest) const {
  const std::uint64_t term = manifest_.info.term;
  return first_slot_ == 0 ? manifest.info.term == term : manifest.is_of(term, first_slot_);
}

Result<void> ChunkWriter::choose_slot() {
  // A server that came back without its last second shows an older manifest, which a master that
  // dies before it can publish again leaves to its successor: what it names must not be written to,
  // even if the server restarts within this put. Of other servers' chunks that cannot be told.
  const bool is_masters = manifest_.info.term != 0;
  if (!track_.known || is_masters) {
    auto old = read_manifest(*shared_, key_, is_masters ? &chosen_on_ : nullptr);
    if (old) {
      track_.known = is_own(*old);
      track_.slot = old->slot;
      if (track_.known) {
        track_.chunks = std::max(track_.chunks, old->chunks.size());
      } else {
        track_.replace(*old);
      }
    } else if (old.error().code != ErrorCode::kNotFound &&
               old.error().code != ErrorCode::kCorrupt) {
      return old.error();
    }
  }
  // Where no manifest of this term names a slot, nothing can be harmed.
  const std::uint32_t next = (track_.slot - first_slot_ + 1) % policy_.slots;
  manifest_.slot = first_slot_ + (track_.known ? next : 0);
  return {};
}

void ChunkWriter::write(std::size_t chunk, std::span<const float> values) {
  SPEEDO_ASSERT(!is_coded());
  SPEEDO_ASSERT(chunk < chunks_.size());
  SPEEDO_ASSERT(!chunks_[chunk]);
  SPEEDO_ASSERT(values.size() == chunk_elements(manifest_.info.element_count, chunk));
  if (!error_) submit_chunk(chunk, std::as_bytes(values));
}

void ChunkWriter::write_encoded(std::size_t chunk, std::span<const std::byte> bytes) {
  SPEEDO_ASSERT(is_coded());
  SPEEDO_ASSERT(chunk < chunks_.size());
  SPEEDO_ASSERT(!chunks_[chunk]);
  if (!error_) submit_chunk(chunk, bytes);
}

void ChunkWriter::submit_chunk(std::size_t chunk, std::span<const std::byte> bytes) {
  const ChunkDestination where{.names = names_,
                               .term = manifest_.info.term,
                               .slot = manifest_.slot,
                               .version = manifest_.info.version,
                               .codec = manifest_.info.codec,
                               .expiry_seconds = policy_.expiry_seconds,
                               .manifest_server = chosen_on_,
                               .progress = progress_};
  chunks_[chunk] = put_chunk(*shared_->map, where, chunk, bytes);
}

bool ChunkWriter::is_sent() const {
  return error_ || std::ranges::all_of(chunks_, [](const KvPtr& each) { return each->is_done(); });
}

// They go out again. True if there were any.
Result<bool> ChunkWriter::rewrite_lost_chunks(const Incarnations& now) {
  const auto doubted = [&](std::size_t chunk) -> std::optional<std::string> {
    if (chunks_[chunk]->server == now[server_of(chunk)]) return std::nullopt;
    return names_.chunk(manifest_.info.term, manifest_.slot, chunk);
  };
  SPEEDO_ASSIGN(const std::vector<std::size_t> lost, find_lost(*shared_->map, chunks_, doubted));
  for (const std::size_t chunk : lost) submit_chunk(chunk, chunks_[chunk]->body);
  if (!lost.empty()) SPEEDO_TRY(wait_for_puts(chunks_));
  return !lost.empty();
}

// Those that answered the last chunk of each server.
ChunkWriter::Incarnations ChunkWriter::newest_incarnations() const {
  Incarnations now(shared_->map->parts());
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    now[server_of(chunk)] = chunks_[chunk]->server;
  }
  return now;
}

// Of the servers that chunks were written to, after the manifest: whoever asks a server but the
// first for a chunk meets the incarnation that readers will meet.
Result<ChunkWriter::Incarnations> ChunkWriter::look_at_servers() const {
  const std::size_t servers = std::min(shared_->map->parts(), chunks_.size());
  std::vector<KvPtr> looks;
  for (std::size_t server = 1; server < servers; ++server) {
    looks.push_back(fetch_head(
        *shared_->map, names_.chunk(manifest_.info.term, manifest_.slot, server)));
  }
  Incarnations now{manifest_server_};
  for (const KvPtr& look : looks) {
    look->wait();
    if (look->error && look->error->code != ErrorCode::kNotFound) return *look->error;
    now.push_back(look->server);
  }
  return now;
}

Result<void> ChunkWriter::write_manifest() {
  manifest_.chunks.clear();
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    manifest_.chunks.push_back({.checksum = checksum_put(*chunks_[chunk]),
                                .bytes = static_cast<std::uint32_t>(chunks_[chunk]->body.size()),
                                .server = static_cast<std::uint32_t>(server_of(chunk))});
  }
  SPEEDO_ASSIGN(manifest_server_,
                put_manifest(*shared_, key_, manifest_, first_slot_, chosen_on_));
  return {};
}

// What the manifest's server shows since it has restarted may name the slot that was chosen: all
// chunks go out again, into another one.
Result<void> ChunkWriter::choose_anew() {
  for (const KvPtr& chunk : chunks_) chunk->wait();
  track_.known = false;
  SPEEDO_TRY(choose_slot());
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    submit_chunk(chunk, chunks_[chunk]->body);
  }
  return {};
}

// True if the record is there, false if servers have lost chunks meanwhile. Error: kMismatch if the
// manifest's server has restarted.
Result<bool> ChunkWriter::try_finish() {
  SPEEDO_TRY(wait_for_puts(chunks_));
  SPEEDO_TRY(rewrite_lost_chunks(newest_incarnations()));
  SPEEDO_TRY(write_manifest());
  SPEEDO_ASSIGN(const Incarnations now, look_at_servers());
  SPEEDO_ASSIGN(const bool lost, rewrite_lost_chunks(now));
  return !lost;
}

Result<void> ChunkWriter::finish_record() {
  for (int attempt = 0; attempt < kStoreAttemptsMax; ++attempt) {
    const Result<bool> done = try_finish();
    if (done && *done) return {};
    if (done) continue;
    if (done.error().code != ErrorCode::kMismatch) return done.error();
    if (attempt + 1 < kStoreAttemptsMax) SPEEDO_TRY(choose_anew());
  }
  return Error{ErrorCode::kUnavailable,
               "the store restarts faster than record '" + key_ + "' can be written"};
}

Result<void> ChunkWriter::finish() {
  if (error_) return *error_;
  auto done = finish_record();
  if (done) {
    record_visible();
  } else {
    if (done.error().code == ErrorCode::kSuperseded) record_refused();
    // Whether the manifest arrived is not known: the next put has to look.
    track_.known = false;
    track_.chunks = std::max(track_.chunks, chunks_.size());
  }
  const std::lock_guard lock(shared_->mutex);
  shared_->tracks.insert_or_assign(key_, track_);
  return done;
}

bool ChunkWriter::replaces_earlier() const {
  if (track_.replaced_slots.empty()) return false;
  const std::uint32_t last = *track_.replaced_slots.rbegin();
  return track_.replaced_term < manifest_.info.term ||
         (track_.replaced_term == manifest_.info.term && last < first_slot_);
}

// Readers have the new record. Chunks that only an earlier master's or writer's manifest named go,
// and those behind this record's end if earlier ones were longer: now, or with a later put. A
// higher term's and a later writer's stay: they may live.
void ChunkWriter::record_visible() {
  RecordTrack now;
  if (replaces_earlier() && !erase_replaced(*shared_, key_, track_, manifest_server_)) now = track_;
  now.known = true;
  now.term = manifest_.info.term;
  now.first_slot = first_slot_;
  now.slot = manifest_.slot;
  now.chunks = chunks_.size();
  if (track_.chunks > chunks_.size()) {
    const bool erased = erase_chunks(*shared_, key_,
                                     {.term = manifest_.info.term,
                                      .first_slot = first_slot_,
                                      .end_slot = first_slot_ + policy_.slots,
                                      .first_chunk = chunks_.size(),
                                      .end_chunk = track_.chunks,
                                      .manifest_server = manifest_server_});
    if (!erased) now.chunks = track_.chunks;
  }
  track_ = std::move(now);
}

// A newer master has the job, or a later writer the record. As long as it has not put this record,
// it reads this one's last, which can even be this very one: if its manifest arrived, but not the
// answer to it.
void ChunkWriter::record_refused() {
  ChunkGarbage garbage{.term = manifest_.info.term,
                       .first_slot = first_slot_,
                       .end_slot = first_slot_ + policy_.slots,
                       .end_chunk = std::max(track_.chunks, chunks_.size())};
  const auto visible = read_manifest(*shared_, key_, &garbage.manifest_server);
  if (visible && is_own(*visible)) {
    if (visible->slot == manifest_.slot) return;
    garbage.first_slot = manifest_.slot;
    garbage.end_slot = manifest_.slot + 1;
  } else if (!visible && visible.error().code != ErrorCode::kNotFound) {
    return;
  }
  erase_chunks(*shared_, key_, garbage);
}

}  // namespace speedo
