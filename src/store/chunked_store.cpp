#include "store/chunked_store.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/memory_store.hpp>

#include "store/ahead_reader.hpp"
#include "store/chunk_fetch.hpp"
#include "store/chunk_range.hpp"
#include "store/chunk_reader.hpp"
#include "store/chunk_writer.hpp"
#include "store/memory_key_value.hpp"
#include "store/part_writer.hpp"
#include "store/record_garbage.hpp"

namespace speedo {
namespace {

// Keys that one operation erases: the server does nothing else meanwhile.
constexpr std::size_t kEraseBatch = 1000;

// The most chunks that this program has put into a copy of a record.
std::size_t known_chunks(StoreShared& shared, std::string_view key) {
  const std::lock_guard lock(shared.mutex);
  const auto found = shared.tracks.find(key);
  return found == shared.tracks.end() ? 0 : found->second.chunks;
}

std::string count_servers(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " server" : " servers");
}

// What the reading of a manifest brought.
Result<RecordManifest> take_manifest(const StoreShared& shared, std::string_view key,
                                     const KvOperation& operation) {
  if (operation.error) {
    if (operation.error->code != ErrorCode::kNotFound) return *operation.error;
    return Error{ErrorCode::kNotFound,
                 "job '" + shared.job + "' has no record '" + std::string(key) + "' in the store"};
  }
  auto manifest = decode_manifest(operation.text);
  if (!manifest) {
    return Error{manifest.error().code, "manifest of record '" + std::string(key) + "' of job '" +
                                            shared.job + "' " + manifest.error().message};
  }
  if (manifest->servers != shared.map->parts()) {
    return Error{ErrorCode::kMismatch,
                 "record '" + std::string(key) + "' of job '" + shared.job + "' is spread over " +
                     count_servers(manifest->servers) + ", this store has " +
                     count_servers(shared.map->parts()) +
                     ": give --redis the servers that the job began with, in their order (a Redis "
                     "Cluster counts as " +
                     std::to_string(kClusterParts) + "), or start anew without --resume"};
  }
  return manifest;
}

}  // namespace

Result<void> check_job_name(const std::string& job) {
  constexpr const char* kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  if (job.empty() || job.size() > kJobNameMax ||
      job.find_first_not_of(kAllowed) != std::string::npos) {
    return Error{ErrorCode::kUsage, "job name '" + job.substr(0, kJobNameMax) +
                                        "': use 1 to " + std::to_string(kJobNameMax) +
                                        " letters, digits, '-', '_' and '.'"};
  }
  return {};
}

std::shared_ptr<ParameterStore> make_memory_store(const std::string& job) {
  return std::make_shared<ChunkedStore>(std::make_shared<MemoryKeyValue>(), job);
}

RecordPolicy policy_of(std::string_view key) {
  if (is_handed_over(key)) {
    return {kContributionSlots, kContributionExpirySeconds};
  }
  return {kRecordSlots, 0};
}

std::optional<KvMaster> StoreShared::master_of(std::uint64_t fence) const {
  if (fence == 0) return std::nullopt;
  KvMaster master;
  master.term_key = term_key(job);
  master.lease_key = lease_key(job);
  master.term = fence;
  return master;
}

std::optional<KvMaster> StoreShared::master_of(std::uint64_t fence, std::string_view key,
                                               std::uint32_t first_slot) const {
  std::optional<KvMaster> master = master_of(fence);
  if (!master || first_slot == 0) return master;
  master->writer_key = RecordKeys(job, key).writer();
  master->writer = first_slot;
  return master;
}

Result<void> execute_fenced(StoreShared& shared, const std::string& what, const KvPtr& operation) {
  if (!operation->master) return execute(*shared.map, operation);
  return execute_as_master(*shared.map, shared.job, what, operation);
}

// The first server's keys go first: without its manifest no record names the others. A master that
// erases nothing asks whose the job is.
Result<void> erase_fenced(StoreShared& shared, const std::string& what,
                          std::vector<std::string> keys, const std::optional<KvMaster>& master) {
  if (keys.empty() && master) {
    auto operation = std::make_shared<KvOperation>();
    operation->kind = KvOperation::Kind::kErase;
    operation->master = master;
    return execute_fenced(shared, what, operation);
  }
  for (std::vector<std::string>& part : by_part(*shared.map, std::move(keys))) {
    auto operation = std::make_shared<KvOperation>();
    operation->kind = KvOperation::Kind::kErase;
    operation->keys = std::move(part);
    operation->master = master;
    SPEEDO_TRY(execute_fenced(shared, what, operation));
  }
  return {};
}

void RecordTrack::replace(const RecordManifest& old) {
  if (old.info.term != replaced_term) {
    replaced_chunks = 0;
    replaced_slots.clear();
  }
  replaced_term = old.info.term;
  replaced_chunks = std::max(replaced_chunks, old.chunks.size());
  replaced_slots.insert(0);
  replaced_slots.insert(old.slot - old.slot % kRecordSlots);
  for (const std::uint32_t each : old.slots) replaced_slots.insert(each - each % kRecordSlots);
}

std::uint64_t only_with_manifest(const KeyValue& map, const RecordKeys& names,
                                 const std::string& key, std::uint64_t incarnation) {
  if (incarnation == 0 || map.parts() == 1) return incarnation;
  return map.part_of(key) == map.part_of(names.manifest()) ? incarnation : 0;
}

Result<std::uint64_t> put_manifest(StoreShared& shared, std::string_view key,
                                   const RecordManifest& manifest, std::uint32_t first_slot,
                                   std::uint64_t only_server) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kSet;
  operation->key = RecordKeys(shared.job, key).manifest();
  operation->head = encode_manifest(manifest);
  operation->expiry_seconds = policy_of(key).expiry_seconds;
  operation->only_server = only_server;
  operation->master = shared.master_of(manifest.info.term, key, first_slot);
  SPEEDO_TRY(execute_fenced(shared, "record '" + std::string(key) + "'", operation));
  return operation->server;
}

Result<RecordManifest> read_manifest(StoreShared& shared, std::string_view key,
                                     std::uint64_t* server) {
  const KvPtr operation = get_whole(RecordKeys(shared.job, key).manifest());
  shared.map->submit(operation);
  operation->wait();
  if (server != nullptr) *server = operation->server;
  return take_manifest(shared, key, *operation);
}

ChunkedStore::ChunkedStore(std::shared_ptr<KeyValue> map, std::string job)
    : shared_(std::make_shared<StoreShared>(std::move(map), std::move(job))) {
  SPEEDO_ASSERT(check_job_name(shared_->job).has_value());
}

std::unique_ptr<RecordWriter> ChunkedStore::write(std::string_view key, const RecordInfo& info) {
  return std::make_unique<ChunkWriter>(shared_, key, info, 0);
}

std::unique_ptr<RecordWriter> ChunkedStore::write_in_turn(std::string_view key,
                                                          const RecordInfo& info,
                                                          std::uint32_t first_slot) {
  SPEEDO_ASSERT(first_slot > 0);
  return std::make_unique<ChunkWriter>(shared_, key, info, first_slot);
}

Result<std::unique_ptr<RecordReader>> ChunkedStore::read(std::string_view key) {
  const std::string name(key);
  return std::move(read_all(std::span(&name, 1)).front());
}

std::vector<Result<std::unique_ptr<RecordReader>>> ChunkedStore::read_all(
    std::span<const std::string> keys) {
  std::vector<KvPtr> manifests;
  for (const std::string& key : keys) {
    manifests.push_back(get_whole(RecordKeys(shared_->job, key).manifest()));
    shared_->map->submit(manifests.back());
  }
  std::vector<Result<std::unique_ptr<RecordReader>>> readers;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    manifests[i]->wait();
    readers.push_back(open(keys[i], *manifests[i]));
  }
  return readers;
}

Result<std::unique_ptr<RecordReader>> ChunkedStore::open(std::string_view key,
                                                         const KvOperation& manifest) {
  SPEEDO_ASSIGN(RecordManifest taken, take_manifest(*shared_, key, manifest));
  std::vector<RecordKeys> names = {RecordKeys(shared_->job, key)};
  return std::unique_ptr<RecordReader>(
      std::make_unique<ChunkReader>(shared_, key, std::move(taken), std::move(names)));
}

std::unique_ptr<AheadReader> ChunkedStore::read_ahead(std::string_view key,
                                                      const AheadRecord& record) {
  return std::make_unique<ChunkAheadReader>(shared_, key, record);
}

Result<void> ChunkedStore::erase(std::string_view key, std::uint64_t element_count) {
  return erase_record(key, element_count, 0);
}

Result<void> ChunkedStore::erase_in_turn(std::string_view key, std::uint64_t element_count,
                                         std::uint32_t first_slot) {
  SPEEDO_ASSERT(first_slot > 0);
  return erase_record(key, element_count, first_slot);
}

// A server that came back without its last second shows the manifest of an earlier writer again.
void ChunkedStore::erase_unfinished(std::string_view key, std::uint64_t element_count,
                                    std::uint32_t first_slot) {
  const std::uint64_t term = shared_->term;
  ChunkGarbage garbage{.term = term,
                       .first_slot = first_slot,
                       .end_slot = first_slot + kRecordSlots,
                       .end_chunk = chunk_count(element_count)};
  const auto visible = read_manifest(*shared_, key, &garbage.manifest_server);
  if (!visible && visible.error().code != ErrorCode::kNotFound) return;
  if (visible && visible->is_of(term, first_slot)) return;
  erase_chunks(*shared_, key, garbage);
}

Result<void> ChunkedStore::erase_record(std::string_view key, std::uint64_t element_count,
                                        std::uint32_t first_slot) {
  const RecordKeys names(shared_->job, key);
  auto manifest = read_manifest(*shared_, key);
  if (!manifest && is_transient(manifest.error().code)) return manifest.error();
  std::vector<std::string> keys = {names.manifest()};
  const std::size_t finished = manifest ? manifest->chunks.size() : 0;
  const std::size_t chunks =
      std::max({finished, known_chunks(*shared_, key), chunk_count(element_count)});
  const std::uint32_t slots = policy_of(key).slots;
  // What is unfinished: of this program, and without a fence, as workers write.
  std::set<std::pair<std::uint64_t, std::uint32_t>> ranges = {{shared_->term.load(), first_slot}};
  if (first_slot == 0) ranges.emplace(0, 0);
  if (manifest) ranges.emplace(manifest->info.term, manifest->slot - manifest->slot % slots);
  for (const auto& [term, first] : ranges) {
    for (std::uint32_t slot = first; slot < first + slots; ++slot) {
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        keys.push_back(names.chunk(term, slot, chunk));
      }
    }
  }
  SPEEDO_TRY(erase_fenced(*shared_, "record '" + std::string(key) + "'", std::move(keys),
                          shared_->master_of(shared_->term, key, first_slot)));
  const std::lock_guard lock(shared_->mutex);
  if (const auto found = shared_->tracks.find(key); found != shared_->tracks.end()) {
    shared_->tracks.erase(found);
  }
  return {};
}

Result<void> ChunkedStore::clear_contributions() {
  {
    const std::lock_guard lock(shared_->mutex);
    std::erase_if(shared_->tracks, [](const auto& each) { return is_handed_over(each.first); });
  }
  return erase_listed("contributions", is_handed_over);
}

Result<void> ChunkedStore::put_blob(std::string_view key, std::string_view value) {
  if (value.size() > kBlobBytesMax - kFrameHeadBytes) {
    return Error{ErrorCode::kFull, "blob '" + std::string(key) + "' has " +
                                       std::to_string(value.size()) + " bytes, the most is " +
                                       std::to_string(kBlobBytesMax - kFrameHeadBytes)};
  }
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kSet;
  operation->key = RecordKeys(shared_->job, key).blob();
  operation->head = encode_blob_head(value);
  operation->body = std::as_bytes(std::span(value.data(), value.size()));
  operation->master = shared_->master_of(shared_->term);
  return execute_fenced(*shared_, "blob '" + std::string(key) + "'", operation);
}

Result<std::string> ChunkedStore::get_blob(std::string_view key) {
  const KvPtr operation = get_whole(RecordKeys(shared_->job, key).blob());
  if (auto done = execute(*shared_->map, operation); !done) {
    if (done.error().code != ErrorCode::kNotFound) return done.error();
    return Error{ErrorCode::kNotFound,
                 "job '" + shared_->job + "' has no blob '" + std::string(key) + "' in the store"};
  }
  const auto value = decode_blob(operation->text);
  if (!value) {
    return Error{ErrorCode::kCorrupt, "blob '" + std::string(key) + "' of job '" + shared_->job +
                                          "' " + value.error().message};
  }
  return std::string(*value);
}

Result<void> ChunkedStore::erase_blob(std::string_view key) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kErase;
  operation->keys = {RecordKeys(shared_->job, key).blob()};
  operation->master = shared_->master_of(shared_->term);
  return execute_fenced(*shared_, "blob '" + std::string(key) + "'", operation);
}

Result<ClaimAnswer> ChunkedStore::claim_master(const MasterClaim& claim) {
  return claim_job(*shared_->map, shared_->job, claim);
}

Result<void> ChunkedStore::release_master(const MasterClaim& claim) {
  return release_job(*shared_->map, shared_->job, claim);
}

std::unique_ptr<PartWriter> ChunkedStore::write_part(std::string_view key, const RecordInfo& info,
                                                     RecordPart where) {
  return std::make_unique<ChunkPartWriter>(shared_, key, info, where);
}

RecordManifest ChunkedStore::manifest_of(const RecordInfo& info,
                                         std::span<const WrittenPart> parts) const {
  const std::size_t servers = shared_->map->parts();
  SPEEDO_ASSERT(parts.size() == servers && info.codec == CodecKind::kNone);
  RecordManifest manifest;
  manifest.info = info;
  manifest.info.term = shared_->term;
  manifest.servers = static_cast<std::uint32_t>(servers);
  for (std::size_t part = 0; part < servers; ++part) {
    SPEEDO_ASSERT(parts[part].checksums.size() ==
                  chunks_of_part(info.element_count, part, servers));
    manifest.slots.push_back(parts[part].slot);
  }
  for (std::size_t chunk = 0; chunk < chunk_count(info.element_count); ++chunk) {
    const std::size_t server = chunk % servers;
    const std::size_t bytes = chunk_elements(info.element_count, chunk) * sizeof(float);
    manifest.chunks.push_back({.checksum = parts[server].checksums[chunk / servers],
                               .bytes = static_cast<std::uint32_t>(bytes),
                               .server = static_cast<std::uint32_t>(server)});
  }
  return manifest;
}

Result<void> ChunkedStore::put_parts(std::string_view key, const RecordInfo& info,
                                     std::span<const WrittenPart> parts) {
  SPEEDO_TRY(put_manifest(*shared_, key, manifest_of(info, parts)));
  return {};
}

Result<bool> ChunkedStore::has_put_parts(std::string_view key, const RecordInfo& info,
                                         std::span<const WrittenPart> parts) {
  const auto there = read_manifest(*shared_, key);
  if (!there) {
    if (there.error().code == ErrorCode::kNotFound) return false;
    return there.error();
  }
  const RecordManifest put = manifest_of(info, parts);
  return there->info.version == put.info.version && there->info.term == put.info.term &&
         there->slots == put.slots && there->chunks == put.chunks;
}

Result<std::unique_ptr<RecordReader>> ChunkedStore::read_copies(std::string_view key) {
  SPEEDO_ASSIGN(RecordManifest manifest, read_manifest(*shared_, key));
  if (manifest.slots.empty()) manifest.slot = 0;
  std::vector<RecordKeys> names;
  for (std::size_t part = 0; part < parts(); ++part) {
    names.emplace_back(shared_->job, part_copy_key(part, parts(), key));
  }
  return std::unique_ptr<RecordReader>(std::make_unique<ChunkReader>(
      shared_, std::string(key) + " (by copies)", std::move(manifest), std::move(names)));
}

// All its chunks: a server that was replaced by a copy lacks what the copy had not taken yet.
Result<bool> ChunkedStore::has_part(std::string_view key, const RecordInfo& info, std::size_t part,
                                    const WrittenPart& written) {
  const RecordKeys names(shared_->job, key);
  std::vector<KvPtr> looks;
  for (std::size_t chunk = part; chunk < chunk_count(info.element_count);
       chunk += shared_->map->parts()) {
    looks.push_back(fetch_head(*shared_->map, names.chunk(shared_->term, written.slot, chunk)));
  }
  SPEEDO_ASSERT(written.checksums.size() == looks.size());
  const auto is_its = [&](std::size_t index, const ChunkHead& head) {
    return head.version == info.version && head.checksum == written.checksums[index];
  };
  SPEEDO_ASSIGN(const std::vector<std::size_t> missing, find_missing(looks, is_its));
  return missing.empty();
}

void ChunkedStore::erase_copies(std::string_view key, std::uint64_t element_count, Copies copies) {
  erase_chunks(*shared_, key,
               {.term = shared_->term,
                .first_slot = copies.first_slot,
                .end_slot = copies.end_slot,
                .first_chunk = copies.part.value_or(0),
                .end_chunk = chunk_count(element_count),
                .stride = copies.part ? shared_->map->parts() : 1});
}

void ChunkedStore::fence(std::uint64_t term) { shared_->term = term; }

Result<void> ChunkedStore::clear() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->tracks.clear();
  }
  return erase_listed("all records", [](std::string_view) { return true; });
}

Result<void> ChunkedStore::erase_unnamed() { return speedo::erase_unnamed(*shared_); }

// Listed once, as a server goes through all of its keys for that. Each batch asks anew whose the
// job is: a master that stands still after the listing must not erase what its successor has
// written under the same keys.
Result<void> ChunkedStore::erase_listed(const std::string& what, IsOf is_of) {
  const std::string prefix = job_prefix(shared_->job);
  SPEEDO_ASSIGN(std::vector<std::string> keys, shared_->map->list(prefix));
  std::erase_if(keys, [&](const std::string& key) {
    return !is_of(std::string_view(key).substr(prefix.size()));
  });
  const std::optional<KvMaster> master = shared_->master_of(shared_->term);
  if (keys.empty()) return erase_fenced(*shared_, what, {}, master);
  for (std::size_t next = 0; next < keys.size(); next += kEraseBatch) {
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(next);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kEraseBatch, keys.size() - next));
    SPEEDO_TRY(erase_fenced(*shared_, what, {first, first + count}, master));
  }
  return {};
}

}  // namespace speedo
