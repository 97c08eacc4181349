#include "store/record_garbage.hpp"

#include <utility>
#include <vector>

#include <speedo/store/part_store.hpp>

#include "base/log.hpp"

namespace speedo {

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
