#include "store/record_garbage.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <speedo/store/part_store.hpp>

#include "base/log.hpp"

namespace speedo {
namespace {

// Keys that one operation erases: the server does nothing else meanwhile.
constexpr std::size_t kUnnamedBatch = 1000;

// What the manifests say that may name chunks of a record: its own, and of copies the copied one's.
struct Named {
  std::set<std::uint64_t> terms;
  std::uint64_t server = 0;  // the incarnation of its own manifest's server
  bool is_certain = true;    // they could be read
};

Result<Named> look_who_is_named(StoreShared& shared, const std::string& record) {
  Named named;
  std::vector<std::string> keys = {record.substr(record.rfind('/') + 1)};
  if (keys.front() != record) keys.push_back(record);
  for (const std::string& key : keys) {
    const auto manifest = read_manifest(shared, key, &named.server);
    if (manifest) {
      named.terms.insert(manifest->info.term);
    } else if (is_transient(manifest.error().code)) {
      return manifest.error();
    } else if (manifest.error().code != ErrorCode::kNotFound) {
      named.is_certain = false;
    }
  }
  return named;
}

// With the condition of the master, and for the incarnation that was asked alone: one without its
// last second may name what it did not. That is then left to the next master.
Result<void> erase_batch(StoreShared& shared, const std::string& record, std::uint64_t server,
                         std::vector<std::string> keys) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kErase;
  operation->only_server = only_with_manifest(*shared.map, RecordKeys(shared.job, record),
                                              keys.front(), server);
  operation->keys = std::move(keys);
  operation->master = shared.master_of(shared.term);
  const auto erased = execute_fenced(shared, "record '" + record + "'", operation);
  if (erased || erased.error().code != ErrorCode::kMismatch) return erased;
  SPEEDO_WARN("Chunks of record '{}' that no manifest names stay in the store: {}", record,
              erased.error().message);
  return {};
}

}  // namespace

Result<void> erase_unnamed(StoreShared& shared) {
  const std::uint64_t term = shared.term;
  if (term == 0) return {};
  // By record; contributions are clear_contributions()'.
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::string>>> found;
  SPEEDO_ASSIGN(std::vector<std::string> all, shared.map->list(job_prefix(shared.job)));
  for (std::string& key : all) {
    const auto chunk = fenced_chunk(shared.job, key);
    if (!chunk || chunk->term >= term) continue;
    if (is_handed_over(chunk->record)) continue;
    found[chunk->record].emplace_back(chunk->term, std::move(key));
  }
  for (auto& [record, chunks] : found) {
    SPEEDO_ASSIGN(const Named named, look_who_is_named(shared, record));
    if (!named.is_certain) continue;
    std::vector<std::string> keys;
    for (auto& [of, key] : chunks) {
      if (!named.terms.contains(of)) keys.push_back(std::move(key));
    }
    for (const std::vector<std::string>& part : by_part(*shared.map, std::move(keys))) {
      for (std::size_t next = 0; next < part.size(); next += kUnnamedBatch) {
        const auto first = part.begin() + static_cast<std::ptrdiff_t>(next);
        const auto count = std::min(kUnnamedBatch, part.size() - next);
        SPEEDO_TRY(erase_batch(shared, record, named.server,
                               {first, first + static_cast<std::ptrdiff_t>(count)}));
      }
    }
  }
  return {};
}

// Of the weights also what their parts' mergers have copied.
bool erase_replaced(StoreShared& shared, std::string_view key, const RecordTrack& track,
                    std::uint64_t server) {
  const std::uint32_t slots = policy_of(key).slots;
  const std::size_t parts = key == weights_key() ? shared.map->parts() : 1;
  bool all = true;
  for (const std::uint32_t first : track.replaced_slots) {
    ChunkGarbage garbage{.term = track.replaced_term,
                         .first_slot = first,
                         .end_slot = first + slots,
                         .end_chunk = track.replaced_chunks,
                         .manifest_server = server};
    all = erase_chunks(shared, key, garbage) && all;
    garbage.stride = parts;
    garbage.manifest_server = 0;
    for (std::size_t part = 0; parts > 1 && part < parts; ++part) {
      garbage.first_chunk = part;
      all = erase_chunks(shared, part_copy_key(part, parts, key), garbage) && all;
    }
  }
  return all;
}

bool erase_chunks(StoreShared& shared, std::string_view key, const ChunkGarbage& garbage) {
  const RecordKeys names(shared.job, key);
  std::vector<std::string> all;
  for (std::uint32_t slot = garbage.first_slot; slot < garbage.end_slot; ++slot) {
    for (std::size_t chunk = garbage.first_chunk; chunk < garbage.end_chunk;
         chunk += garbage.stride) {
      all.push_back(names.chunk(garbage.term, slot, chunk));
    }
  }
  bool done_everywhere = true;
  for (std::vector<std::string>& part : by_part(*shared.map, std::move(all))) {
    auto operation = std::make_shared<KvOperation>();
    operation->kind = KvOperation::Kind::kErase;
    operation->only_server =
        only_with_manifest(*shared.map, names, part.front(), garbage.manifest_server);
    operation->keys = std::move(part);
    if (const auto done = execute(*shared.map, operation); !done) {
      SPEEDO_WARN("Old chunks of record '{}' of job '{}' stay in the store: {}", key, shared.job,
                  done.error().message);
      done_everywhere = false;
    }
  }
  return done_everywhere;
}

}  // namespace speedo
