#include "store/record_garbage.hpp"

#include <utility>
#include <vector>

#include <speedo/store/part_store.hpp>

#include "base/log.hpp"

namespace speedo {

// Of the weights also what their parts' mergers have copied.
void erase_replaced(StoreShared& shared, std::string_view key, const RecordTrack& track,
                    std::uint64_t server) {
  const std::uint32_t slots = policy_of(key).slots;
  const std::size_t parts = key == weights_key() ? shared.map->parts() : 1;
  for (const std::uint32_t first : track.replaced_slots) {
    ChunkGarbage garbage{.term = track.replaced_term,
                         .first_slot = first,
                         .end_slot = first + slots,
                         .end_chunk = track.replaced_chunks,
                         .only_server = server};
    erase_chunks(shared, key, garbage);
    garbage.stride = parts;
    garbage.only_server = 0;
    for (std::size_t part = 0; parts > 1 && part < parts; ++part) {
      garbage.first_chunk = part;
      erase_chunks(shared, part_copy_key(part, parts, key), garbage);
    }
  }
}

void erase_chunks(StoreShared& shared, std::string_view key, const ChunkGarbage& garbage) {
  const RecordKeys names(shared.job, key);
  std::vector<std::string> all;
  for (std::uint32_t slot = garbage.first_slot; slot < garbage.end_slot; ++slot) {
    for (std::size_t chunk = garbage.first_chunk; chunk < garbage.end_chunk;
         chunk += garbage.stride) {
      all.push_back(names.chunk(garbage.term, slot, chunk));
    }
  }
  const std::size_t manifests = shared.map->part_of(names.manifest());
  for (std::vector<std::string>& part : by_part(*shared.map, std::move(all))) {
    auto operation = std::make_shared<KvOperation>();
    operation->kind = KvOperation::Kind::kErase;
    const bool is_with_manifest = shared.map->part_of(part.front()) == manifests;
    operation->only_server = is_with_manifest ? garbage.only_server : 0;
    operation->keys = std::move(part);
    if (const auto done = execute(*shared.map, operation); !done) {
      SPEEDO_WARN("Old chunks of record '{}' of job '{}' stay in the store: {}", key, shared.job,
                  done.error().message);
    }
  }
}

}  // namespace speedo
